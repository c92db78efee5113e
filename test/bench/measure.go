package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// errBrokenOff says that a phase has taken as long as it may.
const errBrokenOff = brokenOff("it takes longer")

type brokenOff string

func (b brokenOff) Error() string { return string(b) }

// brokenOff says for what a phase has waited as long as it may.
func (b *bench) brokenOff(what string) error {
	return fmt.Errorf("waiting %s: %w than %v, which -limit sets", what, errBrokenOff, b.limit)
}

// measurement is one phase of one contender.
type measurement struct {
	Contender string  `json:"contender"`
	Phase     string  `json:"phase"`
	Seconds   float64 `json:"seconds"`
	// Ratio is the wall time over that of the first contender in the same phase; zero for that one itself.
	Ratio float64 `json:"ratio,omitempty"`
	// Rounds are the seconds of every round of a phase that was measured more than once, in the order of their times; the rest is of the
	// median round.
	Rounds []float64 `json:"rounds,omitempty"`
	// Reckoned means that the phase was broken off when so many Pods were done, and that the seconds are what all would have taken. What is
	// counted for each Pod is of those that were done, the CPU time until then.
	Reckoned int `json:"reckoned,omitempty"`
	// CPUSeconds is what the contender's controllers used; the controller manager does more than to look after the Deployment.
	CPUSeconds float64 `json:"cpuSeconds"`
	// CPUPerPod is the same for each Pod, in milliseconds.
	CPUPerPod float64 `json:"cpuMillisecondsPerPod,omitempty"`
	// PeakMiB is the most memory that one of the processes has had so far.
	PeakMiB float64 `json:"peakMiB"`
	// Requests counts the contender's requests by verb and resource; PerPod divides its writes to Pods by the number of Pods.
	Requests     map[string]int `json:"requests"`
	WritesPerPod float64        `json:"writesPerPod"`
	ReadsPerPod  float64        `json:"readsPerPod"`
	Conflicts    int            `json:"conflicts"`
	// MostUnavailable is the largest number of wanted Pods that were not ready at a time, and MostPods the largest number of Pods.
	MostUnavailable int `json:"mostUnavailable"`
	MostPods        int `json:"mostPods"`
	// Neighbour is how many milliseconds the writes of another client took meanwhile.
	Neighbour quantiles `json:"neighbourMilliseconds"`
	// Answer is how many milliseconds the controller took, meanwhile, to create a Pod in place of one of a small workload beside; nil if
	// none was measured.
	Answer *quantiles `json:"answerMilliseconds,omitempty"`
	// PassP99 and LongestPass are how many milliseconds passes of the contender's controller took: 99 of 100, and by the bounds of its
	// histogram the longest.
	PassP99     float64 `json:"passP99Milliseconds,omitempty"`
	LongestPass float64 `json:"longestPassMilliseconds,omitempty"`
	// done is for how many Pods the phase was done: for all, or for those until it was broken off.
	done int
}

// step is one phase that a contender is led through.
type step struct {
	name   string
	want   int32
	change func()
	// still is how long nothing is to happen, instead of a change; zero for a change.
	still time.Duration
}

// measureAll leads all contenders through their phases, and then again through those that are measured more than once.
func (b *bench) measureAll(ctx context.Context, all []contender) ([]measurement, error) {
	var results []measurement
	for _, c := range all {
		measured, err := b.measure(ctx, c)
		results = append(results, measured...)
		if err != nil {
			return results, fmt.Errorf("measuring %s: %w", c.name, err)
		}
	}
	return b.again(ctx, all, results)
}

func (b *bench) measure(ctx context.Context, c contender) ([]measurement, error) {
	w, err := b.workload(ctx, c, "bench-"+strings.ToLower(c.name))
	if err != nil {
		return nil, err
	}
	if b.kind == "cloneset" {
		if err := b.putBeside(ctx, c, "bench-beside-"+strings.ToLower(c.name)); err != nil {
			return nil, err
		}
		defer b.takeBeside()
	}
	if b.kind == gatesKind {
		return b.walk(ctx, c, w, b.repeated(w))
	}
	steps := []step{b.create(w)}
	if w.inPlace != nil {
		steps = append(steps,
			step{name: updatingInPlace, want: int32(b.pods), change: func() { w.inPlace(0); w.image("nginx:mainline") }},
			step{name: "in place, grace 5 s", want: int32(b.pods), change: func() { w.inPlace(5); w.image("nginx:1.27") }})
	}
	steps = append(steps, b.recreate(w))
	if b.kind == "uniteddeployment" {
		steps = append(steps, step{name: atRest, still: 10 * time.Second})
	}
	return b.walk(ctx, c, w, append(steps, b.scaleIn(w)))
}

func (b *bench) create(w workload) step {
	return step{name: creating, want: int32(b.pods), change: func() { w.replicas(int32(b.pods)) }}
}

func (b *bench) recreate(w workload) step {
	return step{name: recreating, want: int32(b.pods), change: func() { w.environment("changed") }}
}

func (b *bench) scaleIn(w workload) step {
	return step{name: scalingIn, change: func() { w.replicas(0) }}
}

// workload creates the workload of a contender, which wants no Pods yet, in a namespace of its own.
func (b *bench) workload(ctx context.Context, c contender, namespace string) (workload, error) {
	for _, s := range b.of(c) {
		if err := s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return workload{}, err
		}
	}
	w := c.make(namespace)
	if err := b.hub().Client.Create(ctx, w.object); err != nil {
		return w, err
	}
	return w, b.awaitNone(ctx, c, w)
}

func (b *bench) walk(ctx context.Context, c contender, w workload, steps []step) ([]measurement, error) {
	var out []measurement
	for _, s := range steps {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, s.name)
		measure := func() (measurement, error) { return b.phase(ctx, c, w, s) }
		if s.still > 0 {
			measure = func() (measurement, error) { return b.settled(ctx, c, s.still) }
		}
		m, err := measure()
		m.Phase = s.name
		out = append(out, m)
		if err != nil {
			return out, fmt.Errorf("phase %s: %w", s.name, err)
		}
	}
	return out, nil
}

// again has the contenders take turns in creating, recreating and removing Pods until there are so many rounds as are asked for, the first
// of which is measured already, and puts the median rounds in the place of the first.
func (b *bench) again(ctx context.Context, all []contender, first []measurement) ([]measurement, error) {
	if b.kind != "cloneset" && b.kind != gatesKind {
		return first, nil // of the others, one phase takes longer than all rounds of these
	}
	rounds := first
	for round := 2; round <= b.rounds; round++ {
		for _, c := range all {
			w, err := b.workload(ctx, c, fmt.Sprintf("bench-%s-%d", strings.ToLower(c.name), round))
			if err != nil {
				return first, err
			}
			measured, err := b.walk(ctx, c, w, b.repeated(w))
			rounds = append(rounds[:len(rounds):len(rounds)], measured...)
			if err != nil {
				return first, fmt.Errorf("measuring %s in round %d: %w", c.name, round, err)
			}
		}
	}
	return medians(first, rounds), nil
}

// repeated are the phases that are measured in each round.
func (b *bench) repeated(w workload) []step {
	if b.kind == gatesKind {
		return []step{b.create(w), b.scaleIn(w)}
	}
	return []step{b.create(w), b.recreate(w), b.scaleIn(w)}
}

// medians returns, for each measurement of the first round, the one with the median time of all rounds: of an even number the slower.
func medians(first, rounds []measurement) []measurement {
	var out []measurement
	for _, m := range first {
		var same []measurement
		for _, other := range rounds {
			if other.Contender == m.Contender && other.Phase == m.Phase {
				same = append(same, other)
			}
		}
		slices.SortFunc(same, func(a, b measurement) int { return cmp.Compare(a.Seconds, b.Seconds) })
		median := same[len(same)/2]
		if len(same) > 1 {
			for _, s := range same {
				median.Rounds = append(median.Rounds, s.Seconds)
			}
			median.Answer = m.Answer // the first round alone has a workload beside
		}
		out = append(out, median)
	}
	return out
}

// mostWarming is how many Pods an API server is warmed up with at most. It makes room for the events of a little more than a minute, in
// which it gets no more than those of some thousand Pods.
const mostWarming = 5000

// warmUp creates and removes as many Pods as will be measured. A fresh API server has so little room for the events of Pods that it breaks
// off the watches of everybody in a burst, who then lag behind for seconds; one that has seen a burst of that size has more.
func (b *bench) warmUp(ctx context.Context) error {
	const namespace = "bench-warm-up"
	if err := b.hub().Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "warming up")
	w := deployment(namespace)
	if err := b.hub().Client.Create(ctx, w.object); err != nil {
		return err
	}
	self := contender{name: "warm-up", pids: func() []int { return []int{os.Getpid()} }}
	for _, want := range []int32{int32(min(b.pods, mostWarming)), 0} {
		if _, err := b.phase(ctx, self, w, step{want: want, change: func() { w.replicas(want) }}); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	return nil
}

// awaitNone waits until the controller has seen that a new workload wants no Pods yet.
func (b *bench) awaitNone(ctx context.Context, c contender, w workload) error {
	seen, err := watchPods(ctx, b.of(c), w.object.GetNamespace())
	if err != nil {
		return err
	}
	defer seen.stop()
	return b.await(ctx, w, 0, seen)
}

func (b *bench) phase(ctx context.Context, c contender, w workload, s step) (measurement, error) {
	seen, err := watchPods(ctx, b.of(c), w.object.GetNamespace())
	if err != nil {
		return measurement{}, err
	}
	defer seen.stop()
	var neighbour quantiles
	var answer *quantiles
	m, err := b.counted(c, w.object.GetNamespace(), func() (done int, err error) {
		change := func() { done, err = b.change(ctx, w, s, seen) }
		answered := change
		var besideErr error
		if b.beside != nil {
			answered = func() { answer, besideErr = b.beside.during(ctx, change) }
		}
		took, otherErr := b.neighbour.during(ctx, answered)
		neighbour = took
		return done, errors.Join(err, besideErr, otherErr)
	})
	m.Neighbour, m.Answer = neighbour, answer
	if done := m.done; done > 0 && done < b.pods {
		m.Reckoned, m.Seconds = done, m.Seconds*float64(s.want)/float64(done)
	}
	m.MostUnavailable, m.MostPods = seen.extremes()
	return m, err
}

// change makes the change of a step, waits until it is done, and returns to how many Pods.
func (b *bench) change(ctx context.Context, w workload, s step, seen *podWatch) (int, error) {
	if err := b.edit(ctx, w.object, s.change); err != nil {
		return 0, err
	}
	err := b.await(ctx, w, s.want, seen)
	if errors.Is(err, errBrokenOff) && w.updated != nil && s.want > 0 && w.updated() > 0 {
		return int(w.updated()), nil
	}
	return b.pods, err
}

// counted measures what the processes of a contender use, and ask about a namespace, while something is done to Pods of it. What is done
// returns to how many.
func (b *bench) counted(c contender, namespace string, do func() (pods int, err error)) (measurement, error) {
	m := measurement{Contender: c.name}
	cpu, err := cpuSeconds(c.pids())
	if err != nil {
		return m, err
	}
	passes, err := b.passes(c)
	if err != nil {
		return m, err
	}
	began := time.Now()
	m.done, err = do()
	ended := time.Now()
	m.Seconds = ended.Sub(began).Seconds()
	if err != nil {
		return m, err
	}
	after, err := cpuSeconds(c.pids())
	if err != nil {
		return m, err
	}
	m.CPUSeconds, m.CPUPerPod = after-cpu, 1000*(after-cpu)/float64(m.done)
	passesAfter, err := b.passes(c)
	if err != nil {
		return m, err
	}
	took := passesAfter.since(passes)
	m.PassP99, m.LongestPass = took.quantiles().P99, 1000*took.most()
	if m.PeakMiB, err = peakMiB(c.pids()); err != nil {
		return m, err
	}
	requests, err := asked(b.of(c), audit.Query{Agent: c.agent, Namespace: namespace, From: began, To: ended})
	if err != nil {
		return m, err
	}
	m.Requests, m.Conflicts = requests.Counts, requests.Conflicts
	m.WritesPerPod, m.ReadsPerPod = float64(requests.PodWrites)/float64(m.done), float64(requests.Reads)/float64(m.done)
	return m, nil
}

// passes reads how long passes of a contender's controller took so far; nothing of one that is not Kruise's.
func (b *bench) passes(c contender) (histogram, error) {
	if c.name != "CloneSet" {
		return nil, nil
	}
	const name = "controller_runtime_reconcile_time_seconds"
	return scrape(context.Background(), b.hub().manager.MetricsAddress(), name, `controller="cloneset",`)
}

// asked adds up what a client asked of the API servers of clusters.
func asked(in []*site, q audit.Query) (audit.Requests, error) {
	out := audit.Requests{Counts: map[string]int{}}
	for _, s := range in {
		one, err := audit.Read(s.audit, q)
		if err != nil {
			return out, err
		}
		for what, times := range one.Counts {
			out.Counts[what] += times
		}
		out.PodWrites, out.Reads, out.Conflicts = out.PodWrites+one.PodWrites, out.Reads+one.Reads, out.Conflicts+one.Conflicts
	}
	return out, nil
}

func (b *bench) edit(ctx context.Context, object client.Object, change func()) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := b.hub().Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return b.hub().Client.Update(ctx, object)
	})
}

func (b *bench) await(ctx context.Context, w workload, want int32, seen *podWatch) error {
	limit := time.After(b.limit)
	for {
		if err := b.hub().Client.Get(ctx, client.ObjectKeyFromObject(w.object), w.object); err != nil {
			return err
		}
		if w.done(want) && seen.settled(int(want)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d Pods: %w", want, ctx.Err())
		case <-limit:
			return b.brokenOff(fmt.Sprintf("for %d Pods", want))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
