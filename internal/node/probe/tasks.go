package probe

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// refresh is how often a result that does not change is reported all the same.
const refresh = 10 * time.Minute

// asked is one question to one container.
type asked struct {
	key
	ip    string
	probe v1alpha1.ContainerProbe
}

// task puts a question again and again.
type task struct {
	asked
	end context.CancelFunc
}

// tasks are the questions that are being put.
type tasks struct {
	life    context.Context // tasks live as long as the process, or until they are taken back
	runtime func() (runtime, error)
	changed func()
	now     func() time.Time
	begun   time.Time

	mu     sync.Mutex
	byKey  map[key]task
	result map[key]v1alpha1.ContainerProbeState
}

func newTasks(life context.Context, r func() (runtime, error), changed func(), now func() time.Time) *tasks {
	return &tasks{life: life, runtime: r, changed: changed, now: now, begun: now(), byKey: map[key]task{}, result: map[key]v1alpha1.ContainerProbeState{}}
}

// follow starts what is asked anew, ends what is not asked any more, and begins anew with what is asked differently: its result is not known then.
func (t *tasks) follow(n *v1alpha1.NodePodProbe) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := indexed(n.Status)
	wanted := map[key]bool{}
	for _, p := range n.Spec.PodProbes {
		for _, probe := range p.Probes {
			a := asked{key{p.UID, probe.Name}, p.IP, probe}
			wanted[a.key] = true
			running, ok := t.byKey[a.key]
			if ok && equality.Semantic.DeepEqual(running.ip, a.ip) && equality.Semantic.DeepEqual(running.probe, a.probe) {
				continue
			}
			if ok {
				running.end()
				if !sameQuestion(running.asked, a) {
					t.put(a.key, rules.Outcome{State: v1alpha1.ProbeUnknown})
				}
			} else if before, told := known[a.key]; told {
				t.result[a.key] = before // by the daemon before this one
			}
			ctx, end := context.WithCancel(t.life)
			t.byKey[a.key] = task{a, end}
			go t.run(ctx, a)
		}
	}
	for k, running := range t.byKey {
		if !wanted[k] {
			running.end()
			delete(t.byKey, k)
			delete(t.result, k)
		}
	}
}

// sameQuestion reports whether the answer to one is an answer to the other: only the pace differs.
func sameQuestion(a, b asked) bool {
	return a.probe.ContainerName == b.probe.ContainerName && equality.Semantic.DeepEqual(a.probe.Probe.ProbeHandler, b.probe.Probe.ProbeHandler)
}

// results returns the newest result of each question that has one.
func (t *tasks) results() map[key]v1alpha1.ContainerProbeState {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[key]v1alpha1.ContainerProbeState, len(t.result))
	for k, state := range t.result {
		out[k] = state
	}
	return out
}

// publish makes an answer the result of a question that is still asked.
func (t *tasks) publish(ctx context.Context, k key, a rules.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() == nil && t.put(k, a) {
		t.changed()
	}
}

// put notes a result, and reports whether it is to be told; the caller holds the lock.
func (t *tasks) put(k key, a rules.Outcome) bool {
	now := metav1.NewTime(t.now()).Rfc3339Copy()
	old, known := t.result[k]
	same := known && old.State == a.State && old.Message == a.Message
	if same && now.Sub(old.LastProbeTime.Time) < refresh {
		return false
	}
	state := v1alpha1.ContainerProbeState{Name: k.name, State: a.State, Message: a.Message, LastProbeTime: now, LastTransitionTime: now}
	if known && old.State == a.State {
		state.LastTransitionTime = old.LastTransitionTime
	}
	t.result[k] = state
	return true
}

// run puts a question until the context ends. A daemon that has just begun spreads its first questions over a period.
func (t *tasks) run(ctx context.Context, a asked) {
	pace := rules.TimingOf(&a.probe.Probe.Probe)
	if t.now().Sub(t.begun) < pace.Period {
		if !pause(ctx, rand.N(pace.Period)) {
			return
		}
	}
	ticks := time.NewTicker(pace.Period)
	defer ticks.Stop()
	var one turn
	for {
		t.ask(ctx, a, &one)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// turn is what is remembered from one time that a question is put to the next.
type turn struct {
	tally rules.Counter
	// started is when the container started that was met last.
	started time.Time
}

// ask puts a question once.
func (t *tasks) ask(ctx context.Context, a asked, one *turn) {
	pace := rules.TimingOf(&a.probe.Probe.Probe)
	r, err := t.runtime()
	if err != nil {
		return // nobody can be asked
	}
	found, err := meet(ctx, r, a)
	if err != nil || found == nil {
		return
	}
	if one.tally.Follow(found.Id) {
		t.publish(ctx, a.key, rules.Outcome{State: v1alpha1.ProbeUnknown})
		one.started = time.Time{}
	}
	answer := rules.NotRunning(a.probe.ContainerName)
	if isRunning(found) {
		if one.started.IsZero() {
			if one.started, err = startOf(ctx, r, found.Id); err != nil {
				return
			}
		}
		if t.now().Sub(one.started) < pace.Delay {
			return
		}
		said, err := put(ctx, r, a, target{found.Id, pace.Timeout})
		if err != nil {
			return
		}
		answer = said
	}
	if one.tally.Count(answer, pace) {
		t.publish(ctx, a.key, answer)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
