package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// noted keeps what it is told.
type noted struct {
	passes    []Pass
	forgotten []types.UID
}

func (n *noted) Note(p Pass)            { n.passes = append(n.passes, p) }
func (n *noted) Forget(owner types.UID) { n.forgotten = append(n.forgotten, owner) }

// tracedKind writes the number that a pass has read into the status, and calls it the release.
func tracedKind() Kind[*corev1.Pod, string, corev1.PodStatus] {
	return Kind[*corev1.Pod, string, corev1.PodStatus]{
		Status:   func(s string, _ plan.Plan, _ apply.Outcome) corev1.PodStatus { return corev1.PodStatus{Message: s} },
		StatusOf: func(p *corev1.Pod) *corev1.PodStatus { return &p.Status },
		Release:  func(s string, p *corev1.Pod) plan.Release { return plan.Release{Name: s, Revision: p.Status.Message} },
	}
}

func tracedLoop(k Kind[*corev1.Pod, string, corev1.PodStatus], tracer Tracer, now *time.Time) *Loop[*corev1.Pod, string, corev1.PodStatus] {
	e := &apply.Executor{Config: apply.Config{Now: func() time.Time { return *now }}}
	return New(k, Runtime{Executor: e, Tracer: tracer}, observe.Reader{}, observe.Reader{})
}

func TestAPassIsToldOf(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now, tracer := begin, &noted{}
	l := tracedLoop(tracedKind(), tracer, &now)
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Status: corev1.PodStatus{Message: "old"}}
	began := l.traced()
	now = begin.Add(time.Second)
	l.trace(began, "new", Pass{Owner: owner, Plan: plan.Plan{Summary: "a plan"}})
	after := owner.DeepCopy()
	after.Status.Message = "new"
	want := []Pass{{
		Owner: after, Release: plan.Release{Name: "new", Revision: "new"}, Plan: plan.Plan{Summary: "a plan"}, Began: begin, Ended: now,
	}}
	if diff := cmp.Diff(want, tracer.passes); diff != "" || owner.Status.Message != "old" {
		t.Errorf("the owner itself says %s; the passes differ (-want +got):\n%s", owner.Status.Message, diff)
	}
	l.Forget(owner)
	if diff := cmp.Diff([]types.UID{"a"}, tracer.forgotten); diff != "" {
		t.Errorf("what is forgotten differs (-want +got):\n%s", diff)
	}
}

// TestAPassThatNobodyTracesCostsNothing checks that neither a clock is asked nor anything made where there is no collector, or a kind has no
// releases.
func TestAPassThatNobodyTracesCostsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		tracer Tracer
		change func(*Kind[*corev1.Pod, string, corev1.PodStatus])
	}{
		"no collector": {nil, func(*Kind[*corev1.Pod, string, corev1.PodStatus]) {}},
		"no releases":  {&noted{}, func(k *Kind[*corev1.Pod, string, corev1.PodStatus]) { k.Release = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			k := tracedKind()
			tc.change(&k)
			l := tracedLoop(k, tc.tracer, nil) // it panics where somebody asks for the time
			owner := &corev1.Pod{}
			if n := testing.AllocsPerRun(100, func() { l.trace(l.traced(), "", Pass{Owner: owner}) }); n > 0 {
				t.Errorf("it allocates %v times", n)
			}
		})
	}
}
