package apply

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// guardian holds back the objects named in it.
type guardian struct {
	held  map[string]bool
	fails error
}

func (g guardian) Asked(_ context.Context, chain plan.Chain) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: chain[0].Object().GetAnnotations()[keys.RelatedBudget]}
}

func (g guardian) Permit(_ context.Context, chain plan.Chain) (string, error) {
	if g.held[chain[0].Object().GetName()] {
		return "web", g.fails
	}
	return "", g.fails
}

func guardedPod(t *testing.T, b *bench, name string) *corev1.Pod {
	t.Helper()
	p := b.pod(name)
	p.Annotations = map[string]string{keys.RelatedBudget: "web"}
	if name == "b" {
		p.Annotations[keys.RelatedBudget] = "another"
	}
	object, err := b.cluster.Create("test", p)
	if err != nil {
		t.Fatal(err)
	}
	p = object.(*corev1.Pod)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// TestWhatABudgetHoldsWaits: nothing of it is written and nothing failed; others go on, but not what was to come after all of them.
func TestWhatABudgetHoldsWaits(t *testing.T) {
	b := newBench(t)
	b.Budgets = guardian{held: map[string]bool{"a": true, "c": true}}
	var stage plan.Stage
	for _, name := range []string{"a", "b", "c"} {
		p := guardedPod(t, b, name)
		stage = append(stage, plan.Chain{{Verb: plan.Update, Before: p, After: withImage(p, "app:v2"), Event: "Updated", EventMessage: name, FailedEvent: "Failed"}})
	}
	outcome := b.run(t, stage, plan.Stage{create(b.pod("after"))})
	if err := outcome.Err(); err != nil || outcome.Conflict() {
		t.Errorf("error %v, conflict %t", err, outcome.Conflict())
	}
	if len(b.writes) != 1 || b.now("b").Spec.Containers[0].Image != "app:v2" {
		t.Errorf("writes %v", b.writes)
	}
	if diff := cmp.Diff([]string{"Normal Updated b"}, b.emitted()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want := []plan.Hold{{Code: reason.WaitPUB, Why: "PodUnavailableBudget web lets no more of its Pods become unavailable now", Event: EventWaits, EventType: corev1.EventTypeNormal}}
	if diff := cmp.Diff(want, outcome.Waits()); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

// TestARefusedDeletionWaits: what the webhook of budgets refuses is none of the deletion's fault; what others refuse is.
func TestARefusedDeletionWaits(t *testing.T) {
	refusal := func(kind string) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "web", errors.New("no"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "no"}}
		return err
	}
	for kind, waits := range map[string]bool{keys.BudgetResource: true, "others": false} {
		b := newBench(t)
		b.before = func(string) error { return refusal(kind) }
		outcome := b.run(t, plan.Stage{{{Verb: plan.Delete, Concern: plan.Scale, Before: b.stored(t, "a"), FailedEvent: "Failed"}}})
		events := b.emitted()
		if waited := outcome.Err() == nil && len(outcome.Waits()) == 1 && len(events) == 0; waited != waits {
			t.Errorf("%s: error %v, waits %v, events %v", kind, outcome.Err(), outcome.Waits(), events)
		}
	}
}

// TestAGuardThatFailsIsAFailure: nothing is written without its word.
func TestAGuardThatFailsIsAFailure(t *testing.T) {
	b := newBench(t)
	why := errors.New("no answer")
	b.Budgets = guardian{fails: why}
	p := guardedPod(t, b, "a")
	outcome := b.run(t, plan.Stage{{{Verb: plan.Update, Before: p, After: withImage(p, "app:v2")}}})
	if !errors.Is(outcome.Err(), why) || len(b.writes) > 0 || len(outcome.Waits()) > 0 {
		t.Errorf("error %v, writes %v, waits %v", outcome.Err(), b.writes, outcome.Waits())
	}
}
