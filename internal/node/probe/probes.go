package probe

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	rules "github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// refresh is how often a result that does not change is reported all the same.
const refresh = 10 * time.Minute

// podProbe is one probe of one Pod.
type podProbe struct {
	key
	namespace, ip string
	spec          v1alpha1.ContainerProbe
}

// run is a probe that runs periodically.
type run struct {
	podProbe
	cancel context.CancelFunc
	// result is nil before there is one.
	result *v1alpha1.ContainerProbeState
}

// probes are those that run.
type probes struct {
	ctx     context.Context // ends every probe
	runtime func() (runtime, error)
	// changed is called when a result is to be reported.
	changed func()
	now     func() time.Time
	started time.Time
	turns   *turns

	mu    sync.Mutex
	byKey map[key]*run
}

func newProbes(ctx context.Context, r func() (runtime, error), changed func(), now func() time.Time) *probes {
	return &probes{ctx: ctx, runtime: r, changed: changed, now: now, started: now(), turns: newTurns(), byKey: map[key]*run{}}
}

// follow starts new probes, ends those that are removed, and restarts those that have changed. A result stays if only the timing of its
// probe has changed, and is unknown otherwise.
func (s *probes) follow(n *v1alpha1.NodePodProbe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reported := statesByKey(n.Status)
	wanted := map[key]bool{}
	for _, pod := range n.Spec.PodProbes {
		for _, spec := range pod.Probes {
			p := podProbe{key: key{pod.UID, spec.Name}, namespace: pod.Namespace, ip: pod.IP, spec: spec}
			wanted[p.key] = true
			old := s.byKey[p.key]
			if old != nil && old.ip == p.ip && equality.Semantic.DeepEqual(old.spec, p.spec) {
				continue
			}
			ctx, cancel := context.WithCancel(s.ctx)
			started := &run{podProbe: p, cancel: cancel}
			s.byKey[p.key] = started
			if old != nil {
				old.cancel()
				started.result = old.result
				if !asksTheSame(old.spec, spec) {
					s.setResult(started, rules.Outcome{State: v1alpha1.ProbeUnknown})
				}
			} else if state, ok := reported[p.key]; ok {
				started.result = &state // of an earlier daemon
			}
			go s.run(ctx, p)
		}
	}
	for k, old := range s.byKey {
		if !wanted[k] {
			old.cancel()
			delete(s.byKey, k)
		}
	}
}

// asksTheSame reports whether two probes differ in their timing at most.
func asksTheSame(a, b v1alpha1.ContainerProbe) bool {
	return a.ContainerName == b.ContainerName && equality.Semantic.DeepEqual(a.Probe.ProbeHandler, b.Probe.ProbeHandler)
}

// results returns the newest result of each probe that has one.
func (s *probes) results() map[key]v1alpha1.ContainerProbeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[key]v1alpha1.ContainerProbeState, len(s.byKey))
	for k, p := range s.byKey {
		if p.result != nil {
			out[k] = *p.result
		}
	}
	return out
}

// publish makes an outcome the result of its probe, unless that has ended.
func (s *probes) publish(ctx context.Context, k key, o rules.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byKey[k]; p != nil && ctx.Err() == nil && s.setResult(p, o) {
		s.changed()
	}
}

// setResult reports whether the result is to be reported. The caller holds the lock.
func (s *probes) setResult(p *run, o rules.Outcome) bool {
	now := metav1.NewTime(s.now()).Rfc3339Copy()
	old := p.result
	if old != nil && old.State == o.State && old.Message == o.Message && now.Sub(old.LastProbeTime.Time) < refresh {
		return false
	}
	p.result = &v1alpha1.ContainerProbeState{Name: p.name, State: o.State, Message: o.Message, LastProbeTime: now, LastTransitionTime: now}
	if old != nil && old.State == o.State {
		p.result.LastTransitionTime = old.LastTransitionTime
	}
	return true
}

// run runs a probe until the context ends. A daemon that has just started spreads its probes over a period.
func (s *probes) run(ctx context.Context, p podProbe) {
	timing := rules.TimingOf(&p.spec.Probe.Probe)
	if s.now().Sub(s.started) < timing.Period && !worker.Sleep(ctx, rand.N(timing.Period)) {
		return
	}
	var counter rules.Counter
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) { s.runOnce(ctx, p, &counter) }, timing.Period)
}

// runOnce runs a probe once, when it is its turn. A probe that can't be run, because the runtime does not answer, has no outcome.
func (s *probes) runOnce(ctx context.Context, p podProbe, counter *rules.Counter) {
	if !s.turns.begin(ctx, p.namespace) {
		return
	}
	defer s.turns.end(p.namespace)
	timing := rules.TimingOf(&p.spec.Probe.Probe)
	r, err := s.runtime()
	if err != nil {
		return
	}
	containers, err := r.Containers(ctx, p.pod)
	container := containers[p.spec.ContainerName]
	if err != nil || container == nil {
		return
	}
	if counter.Follow(container.Id) {
		s.publish(ctx, p.key, rules.Outcome{State: v1alpha1.ProbeUnknown})
	}
	outcome := rules.NotRunning(p.spec.ContainerName)
	if isRunning(container) {
		if counter.StartedAt.IsZero() {
			if counter.StartedAt, err = startTime(ctx, r, container.Id); err != nil {
				return
			}
		}
		if s.now().Sub(counter.StartedAt) < timing.Delay {
			return
		}
		if outcome, err = execute(ctx, r, p, target{container.Id, timing.Timeout}); err != nil {
			return
		}
	}
	if counter.Count(outcome, timing) {
		s.publish(ctx, p.key, outcome)
	}
}
