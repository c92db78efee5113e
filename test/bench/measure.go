package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// errBrokenOff says that a phase has taken as long as it may.
const errBrokenOff = brokenOff("it takes too long")

type brokenOff string

func (b brokenOff) Error() string { return string(b) }

type bench struct {
	settings
	cluster *cluster.Cluster
	audit   string
	manager *cluster.Manager
}

// measurement is one phase of one contender.
type measurement struct {
	Contender string  `json:"contender"`
	Phase     string  `json:"phase"`
	Seconds   float64 `json:"seconds"`
	// Rounds are the seconds of every round of a phase that was measured more than once, in the order of their times; the rest is of the
	// median round.
	Rounds []float64 `json:"rounds,omitempty"`
	// Reckoned means that the phase was broken off when so many Pods were done, and that the seconds are what all would have taken. What is
	// counted for each Pod is of those that were done, the CPU time until then.
	Reckoned int `json:"reckoned,omitempty"`
	// CPUSeconds is what the contender's controller used; the controller manager does more than to look after the Deployment.
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakMiB is the most memory that the process has had so far.
	PeakMiB float64 `json:"peakMiB"`
	// Requests counts the contender's requests by verb and resource; PerPod divides its writes to Pods by the number of Pods.
	Requests     map[string]int `json:"requests"`
	WritesPerPod float64        `json:"writesPerPod"`
	ReadsPerPod  float64        `json:"readsPerPod"`
	Conflicts    int            `json:"conflicts"`
	// MostUnavailable is the largest number of wanted Pods that were not ready at a time, and MostPods the largest number of Pods.
	MostUnavailable int `json:"mostUnavailable"`
	MostPods        int `json:"mostPods"`
}

// step is one phase that a contender is led through.
type step struct {
	name   string
	want   int32
	change func()
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
	steps := []step{b.create(w)}
	if w.inPlace != nil {
		steps = append(steps,
			step{name: "in place", want: int32(b.pods), change: func() { w.inPlace(0); w.image("nginx:mainline") }},
			step{name: "in place, grace 5 s", want: int32(b.pods), change: func() { w.inPlace(5); w.image("nginx:1.27") }})
	}
	steps = append(steps, b.recreate(w), b.scaleIn(w))
	return b.walk(ctx, c, w, steps)
}

func (b *bench) create(w workload) step {
	return step{name: "create", want: int32(b.pods), change: func() { w.replicas(int32(b.pods)) }}
}

func (b *bench) recreate(w workload) step {
	return step{name: "recreate", want: int32(b.pods), change: func() { w.environment("changed") }}
}

func (b *bench) scaleIn(w workload) step {
	return step{name: "scale in", change: func() { w.replicas(0) }}
}

// workload creates the workload of a contender, which wants no Pods yet, in a namespace of its own.
func (b *bench) workload(ctx context.Context, c contender, namespace string) (workload, error) {
	if err := b.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return workload{}, err
	}
	w := c.make(namespace)
	if err := b.cluster.Client.Create(ctx, w.object); err != nil {
		return w, err
	}
	return w, b.awaitNone(ctx, w)
}

func (b *bench) walk(ctx context.Context, c contender, w workload, steps []step) ([]measurement, error) {
	var out []measurement
	for _, s := range steps {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, s.name)
		m, err := b.phase(ctx, c, w, s.want, s.change)
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
	if b.kind != "cloneset" {
		return first, nil // of the others, one phase takes longer than all rounds of these
	}
	rounds := first
	for round := 2; round <= b.rounds; round++ {
		for _, c := range all {
			w, err := b.workload(ctx, c, fmt.Sprintf("bench-%s-%d", strings.ToLower(c.name), round))
			if err != nil {
				return first, err
			}
			measured, err := b.walk(ctx, c, w, []step{b.create(w), b.recreate(w), b.scaleIn(w)})
			rounds = append(rounds[:len(rounds):len(rounds)], measured...)
			if err != nil {
				return first, fmt.Errorf("measuring %s in round %d: %w", c.name, round, err)
			}
		}
	}
	return medians(first, rounds), nil
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
		}
		out = append(out, median)
	}
	return out
}

// warmUp creates and removes as many Pods as will be measured. A fresh API server has so little room for the events of Pods that it breaks
// off the watches of everybody in a burst, who then lag behind for seconds; one that has seen a burst of that size has more.
func (b *bench) warmUp(ctx context.Context) error {
	const namespace = "bench-warm-up"
	if err := b.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "warming up")
	w := deployment(namespace)
	if err := b.cluster.Client.Create(ctx, w.object); err != nil {
		return err
	}
	for _, want := range []int32{int32(b.pods), 0} {
		if _, err := b.phase(ctx, contender{name: "warm-up", pid: os.Getpid}, w, want, func() { w.replicas(want) }); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	return nil
}

// awaitNone waits until the controller has seen that a new workload wants no Pods yet.
func (b *bench) awaitNone(ctx context.Context, w workload) error {
	seen, err := b.watchPods(ctx, w.object.GetNamespace())
	if err != nil {
		return err
	}
	defer seen.stop()
	return b.await(ctx, w, 0, seen)
}

func (b *bench) phase(ctx context.Context, c contender, w workload, want int32, change func()) (measurement, error) {
	m := measurement{Contender: c.name}
	seen, err := b.watchPods(ctx, w.object.GetNamespace())
	if err != nil {
		return m, err
	}
	defer seen.stop()
	cpu, err := cluster.CPUSeconds(c.pid())
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := b.edit(ctx, w.object, change); err != nil {
		return m, err
	}
	err = b.await(ctx, w, want, seen)
	ended := time.Now()
	m.Seconds = ended.Sub(began).Seconds()
	if errors.Is(err, errBrokenOff) && w.updated != nil && want > 0 {
		if m.Reckoned = int(w.updated()); m.Reckoned == 0 {
			return m, err
		}
		m.Seconds *= float64(want) / float64(m.Reckoned)
	} else if err != nil {
		return m, err
	}
	after, err := cluster.CPUSeconds(c.pid())
	if err != nil {
		return m, err
	}
	m.CPUSeconds = after - cpu
	if m.PeakMiB, err = peakMiB(c.pid()); err != nil {
		return m, err
	}
	m.MostUnavailable, m.MostPods = seen.extremes()
	requests, err := audit.Read(b.audit, audit.Query{Agent: c.agent, Namespace: w.object.GetNamespace(), From: began, To: ended})
	if err != nil {
		return m, err
	}
	m.Requests = requests.Counts
	done := float64(b.pods)
	if m.Reckoned > 0 {
		done = float64(m.Reckoned)
	}
	m.WritesPerPod, m.ReadsPerPod = float64(requests.PodWrites)/done, float64(requests.Reads)/done
	m.Conflicts = requests.Conflicts
	return m, nil
}

func (b *bench) edit(ctx context.Context, object client.Object, change func()) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := b.cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return b.cluster.Client.Update(ctx, object)
	})
}

func (b *bench) await(ctx context.Context, w workload, want int32, seen *podWatch) error {
	limit := time.After(b.limit)
	for {
		if err := b.cluster.Client.Get(ctx, client.ObjectKeyFromObject(w.object), w.object); err != nil {
			return err
		}
		if w.done(want) && seen.settled(int(want)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d Pods: %w", want, ctx.Err())
		case <-limit:
			return fmt.Errorf("waiting for %d Pods: %w", want, errBrokenOff)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// podWatch counts the Pods of a namespace as its events come in.
type podWatch struct {
	stop   func()
	mu     sync.Mutex
	ready  map[string]bool
	most   int
	worst  int
	steady int
}

// watchPods counts from what is there now; availability is judged against the number of Pods that were ready at the start. An informer
// does the watching, because a watch that the API server ends under load has to be resumed.
func (b *bench) watchPods(ctx context.Context, namespace string) (*podWatch, error) {
	clients, err := kubernetes.NewForConfig(b.cluster.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	seen := &podWatch{ready: map[string]bool{}}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { seen.see(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) { seen.forget(object) },
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	seen.stop = func() { cancel(); factory.Shutdown() }
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		seen.stop()
		return nil, fmt.Errorf("listing the Pods of %s: %w", namespace, ctx.Err())
	}
	seen.begin()
	return seen, nil
}

// begin forgets what was counted while the first Pods came in.
func (s *podWatch) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steady, s.most, s.worst = s.readyPods(), len(s.ready), 0
}

func (s *podWatch) readyPods() int {
	n := 0
	for _, ready := range s.ready {
		if ready {
			n++
		}
	}
	return n
}

func (s *podWatch) see(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.DeletionTimestamp != nil {
		delete(s.ready, p.Name)
	} else {
		s.ready[p.Name] = pod.IsReady(p)
	}
	s.count()
}

func (s *podWatch) forget(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	_, name, _ := cache.SplitMetaNamespaceKey(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, name)
	s.count()
}

func (s *podWatch) count() {
	s.most = max(s.most, len(s.ready))
	s.worst = max(s.worst, s.steady-s.readyPods())
}

func (s *podWatch) settled(want int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) == want && s.readyPods() == want
}

func (s *podWatch) extremes() (unavailable, pods int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worst, s.most
}
