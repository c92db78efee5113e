package trace_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/trace"
	"github.com/seed-69ecc383/kruise/test/kit/otlp"
)

// world is a tracer before a collector, at times that the test sets.
type world struct {
	*testing.T
	collector *otlp.Collector
	tracer    *trace.Tracer
	now       time.Time
}

func newWorld(t *testing.T, sampling float64) *world {
	t.Helper()
	c := otlp.Start()
	t.Cleanup(c.Stop)
	w := &world{T: t, collector: c, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.tracer = w.manager(sampling)
	return w
}

// manager returns the tracer of one more manager.
func (w *world) manager(sampling float64) *trace.Tracer {
	w.Helper()
	tracer, err := trace.New(w.Context(), trace.Options{
		Endpoint: w.collector.URL(), Sampling: sampling, Service: "kruise-manager", Instance: "one", Log: logr.Discard(),
	})
	if err != nil {
		w.Fatal(err)
	}
	return tracer
}

// spans ends the tracer, and returns what the collector has got.
func (w *world) spans() []otlp.Span {
	w.Helper()
	if err := w.tracer.Shutdown(w.Context(), w.now); err != nil {
		w.Fatal(err)
	}
	return w.collector.Spans(nil)
}

// pass tells of a pass of a second over a CloneSet of 3 Pods, of which so many are updated and available.
func (w *world) pass(revision string, updated int32, change func(*loop.Pass, *v1beta1.CloneSet)) {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 1}}
	three := int32(3)
	set.Spec.Replicas = &three
	set.Status = v1beta1.CloneSetStatus{
		ObservedGeneration: 1, Replicas: 3, AvailableReplicas: 3, UpdatedReplicas: updated, UpdatedAvailableReplicas: updated,
	}
	p := loop.Pass{
		Owner: set, Release: plan.Release{Name: revision + "/1", Revision: revision}, Began: w.now, Ended: w.now.Add(time.Second),
	}
	if change != nil {
		change(&p, set)
	}
	w.now = w.now.Add(time.Second)
	w.tracer.Note(p)
}

// updates adds the update of a Pod to a pass, which takes so many milliseconds and ends with an error.
func updates(pod string, milliseconds int, err error) func(*loop.Pass, *v1beta1.CloneSet) {
	return func(p *loop.Pass, _ *v1beta1.CloneSet) {
		after := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, UID: types.UID("uid-" + pod)}}
		p.Outcome.Results = append(p.Outcome.Results, apply.Result{
			Action: plan.Action{
				Verb: plan.Update, Concern: plan.Rollout, After: after, What: "in place: app v1 -> v2", Why: "2 Pods are wanted", Method: plan.InPlace,
				Event: "SuccessfulUpdatePodInPlace",
			},
			Object: after, Err: err, Began: p.Began, Ended: p.Began.Add(time.Duration(milliseconds) * time.Millisecond),
		})
	}
}

// holds adds something that a pass holds back.
func holds(code reason.Code, why string) func(*loop.Pass, *v1beta1.CloneSet) {
	return func(p *loop.Pass, _ *v1beta1.CloneSet) {
		p.Plan.Holds = append(p.Plan.Holds, plan.Hold{Code: code, Why: why})
	}
}

func both(all ...func(*loop.Pass, *v1beta1.CloneSet)) func(*loop.Pass, *v1beta1.CloneSet) {
	return func(p *loop.Pass, set *v1beta1.CloneSet) {
		for _, one := range all {
			one(p, set)
		}
	}
}

func TestARollout(t *testing.T) {
	w := newWorld(t, 1)
	began := w.now
	w.pass("web-1", 3, nil) // at rest before
	w.pass("web-2", 0, both(updates("web-a", 20, nil), holds(reason.WaitBudget, "maxUnavailable 1 is used up")))
	w.pass("web-2", 1, holds(reason.WaitBudget, "the same in other words"))
	w.pass("web-2", 1, both(updates("web-b", 30, errors.New("refused")), holds(reason.WaitLifecycleHook, "a hook")))
	w.pass("web-2", 3, nil)
	w.pass("web-2", 3, updates("web-c", 10, nil)) // what happens after the end is not the rollout's
	spans := w.spans()
	want := []string{"rollout", "  pass", "    update Pod", "  wait WaitBudget", "  pass", "    update Pod", "  wait WaitLifecycleHook"}
	if diff := cmp.Diff(want, otlp.Tree(spans)); diff != "" {
		t.Fatalf("the spans differ (-want +got):\n%s", diff)
	}
	seconds := func(from, to float64) string { return fmt.Sprintf("%g to %g", from, to) }
	var times []string
	for _, s := range spans {
		times = append(times, seconds(s.Start.Sub(began).Seconds(), s.End.Sub(began).Seconds()))
		if s.Trace != spans[0].Trace || s.Resource["service.name"] != "kruise-manager" || s.Attributes["k8s.namespace.name"] != "shop" {
			t.Errorf("span %+v is not of the trace, the service or the namespace", s)
		}
	}
	if diff := cmp.Diff([]string{"1 to 5", "1 to 2", "1 to 1.02", "2 to 4", "3 to 4", "3 to 3.03", "4 to 5"}, times); diff != "" {
		t.Errorf("the times differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"k8s.namespace.name": "shop", "k8s.object.kind": "CloneSet", "k8s.object.name": "web", "k8s.object.uid": "u", "kruise.revision": "web-2",
		"kruise.result": "done", "kruise.message": "all Pods are updated and in service",
		"kruise.pods.updated": "3", "kruise.pods.wanted": "3", "kruise.pods.total": "3",
	}, spans[0].Attributes); diff != "" {
		t.Errorf("the root differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"k8s.namespace.name": "shop", "k8s.pod.name": "web-a", "k8s.pod.uid": "uid-web-a", "kruise.write.verb": "update",
		"kruise.write.concern": "update", "kruise.write.what": "in place: app v1 -> v2", "kruise.write.why": "2 Pods are wanted",
		"kruise.write.event": "SuccessfulUpdatePodInPlace", "kruise.update.method": "InPlace", "kruise.result": "ok",
	}, spans[2].Attributes); diff != "" {
		t.Errorf("the write differs (-want +got):\n%s", diff)
	}
	if spans[5].Failed != "refused" || spans[4].Failed != "refused" || spans[5].Attributes["kruise.result"] != "error" {
		t.Errorf("nothing says that a write failed: %+v, %+v", spans[4], spans[5])
	}
	if spans[3].Attributes["kruise.message"] != "maxUnavailable 1 is used up" {
		t.Errorf("the wait says %v", spans[3].Attributes)
	}
}

// TestEnds tells of how rollouts end that do not just come to their end.
func TestEnds(t *testing.T) {
	begin := func(w *world) { w.pass("web-1", 3, nil); w.pass("web-2", 0, updates("web-a", 1, nil)) }
	for name, tc := range map[string]struct {
		passes func(*world)
		want   []string
		result string
	}{
		"another revision takes over": {func(w *world) { begin(w); w.pass("web-3", 0, nil) }, []string{"rollout", "  pass", "    update Pod"}, "superseded"},
		"a partition is no end": {func(w *world) {
			begin(w)
			w.pass("web-2", 1, func(_ *loop.Pass, set *v1beta1.CloneSet) {
				two := intstr.FromInt32(2)
				set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{Partition: &two}
			})
		}, []string{"(a span that is not here)", "  pass", "    update Pod", "  wait HeldByPartition"}, ""},
		"its owner is gone": {func(w *world) { begin(w); w.tracer.Forget("u"); w.pass("web-2", 3, nil) },
			[]string{"(a span that is not here)", "  pass", "    update Pod"}, ""},
		"a rollout that another manager began is ended": {func(w *world) { w.pass("web-2", 1, nil); w.pass("web-2", 3, nil) }, []string{"rollout"}, "done"},
		"all were updated at the first look, and one is out of service": {func(w *world) {
			w.pass("web-2", 3, both(updates("web-a", 1, nil), func(_ *loop.Pass, set *v1beta1.CloneSet) { set.Status.AvailableReplicas = 2 }))
			w.pass("web-2", 3, nil)
		}, nil, ""},
		"one that was over at the first look is not": {func(w *world) { w.pass("web-2", 3, updates("web-a", 1, nil)) }, nil, ""},
		"a kind without releases": {func(w *world) {
			w.pass("web-2", 0, func(p *loop.Pass, _ *v1beta1.CloneSet) { p.Release = plan.Release{}; updates("web-a", 1, nil)(p, nil) })
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			tc.passes(w)
			spans := w.spans()
			if diff := cmp.Diff(tc.want, otlp.Tree(spans)); diff != "" {
				t.Fatalf("the spans differ (-want +got):\n%s", diff)
			}
			if tc.result != "" && spans[0].Attributes["kruise.result"] != tc.result {
				t.Errorf("the root says %v, want %s", spans[0].Attributes, tc.result)
			}
		})
	}
}

// TestManagersGoOn has one manager begin a rollout and another one end it: the spans of both are one trace, below one root, which begins
// when the revision was made.
func TestManagersGoOn(t *testing.T) {
	w := newWorld(t, 1)
	made := w.now.Add(-time.Minute)
	since := func(p *loop.Pass, _ *v1beta1.CloneSet) { p.Release.Began = made }
	w.pass("web-1", 3, nil)
	w.pass("web-2", 0, both(since, updates("web-a", 1, nil)))
	before := w.spans()
	w.tracer = w.manager(1)
	w.pass("web-2", 1, both(since, updates("web-b", 1, nil)))
	w.pass("web-2", 3, since)
	all := w.spans()
	if diff := cmp.Diff([]string{"rollout", "  pass", "    update Pod", "  pass", "    update Pod"}, otlp.Tree(all)); diff != "" || len(before) != 2 {
		t.Fatalf("%d spans of the first manager; of both (-want +got):\n%s", len(before), diff)
	}
	if !all[0].Start.Equal(made) {
		t.Errorf("the root began at %s, want %s", all[0].Start, made)
	}
}

// TestSampling checks that a trace is sent as a whole or not at all, and that about as many are as is asked for.
func TestSampling(t *testing.T) {
	w := newWorld(t, 0.5)
	const rollouts = 200
	for i := range rollouts {
		revision := fmt.Sprintf("web-%d", i)
		w.pass(revision, 0, updates("web-a", 1, nil))
		w.pass(revision, 3, nil)
	}
	traces := map[string]int{}
	for _, s := range w.spans() {
		traces[s.Trace]++
	}
	for id, n := range traces {
		if n != 3 {
			t.Errorf("trace %s has %d spans, want all 3", id, n)
		}
	}
	if n := len(traces); n < rollouts/4 || n > rollouts*3/4 {
		t.Errorf("%d of %d traces were sent, want about half", n, rollouts)
	}
}

// TestAReleaseOfARollout has its end told by a status that knows of no release any more.
func TestAReleaseOfARollout(t *testing.T) {
	w := newWorld(t, 1)
	note := func(release string, phase rolloutsv1beta1.RolloutPhase, state rolloutsv1beta1.StepState) {
		r := &rolloutsv1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "r"}}
		r.Spec.Strategy.Canary = &rolloutsv1beta1.CanaryStrategy{}
		r.Spec.Strategy.Canary.Steps = []rolloutsv1beta1.Step{{}}
		r.Status.Phase = phase
		if state != "" {
			r.Status.CanaryStatus = &rolloutsv1beta1.CanaryStatus{}
			r.Status.CanaryStatus.CurrentStepIndex, r.Status.CanaryStatus.CurrentStepState = 1, state
		}
		w.tracer.Note(loop.Pass{Owner: r, Release: plan.Release{Name: release}, Began: w.now, Ended: w.now})
		w.now = w.now.Add(time.Second)
	}
	note("", rolloutsv1beta1.RolloutPhaseHealthy, "")
	note("1", rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStateUpgrade)
	note("1", rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStatePaused)
	note("1", rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStateReady)
	note("", rolloutsv1beta1.RolloutPhaseHealthy, "")
	spans := w.spans()
	if diff := cmp.Diff([]string{"rollout", "  wait WaitApproval"}, otlp.Tree(spans)); diff != "" {
		t.Fatalf("the spans differ (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(spans, func(s otlp.Span) bool { return s.Attributes["k8s.object.kind"] == "Rollout" }) {
		t.Errorf("no span says of what it is: %+v", spans)
	}
}
