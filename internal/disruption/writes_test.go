package disruption

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func unready(p *corev1.Pod)  { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func upgraded(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v2"}} }
func labelled(p *corev1.Pod) { p.Labels = map[string]string{"more": "x"} }
func unguarded(p *corev1.Pod) {
	p.Annotations = nil
}

// recreated is how controllers recreate a Pod.
func recreated(p *corev1.Pod) plan.Chain {
	return plan.Chain{{Verb: plan.Delete, Concern: plan.Rollout, Before: p}}
}

// TestWhatLeavesServiceIsEvaluated: an evaluator whose budget is used up holds back what it is asked about, and nothing else.
func TestWhatLeavesServiceIsEvaluated(t *testing.T) {
	for name, tc := range map[string]struct {
		chain plan.Chain
		want  string
	}{
		"an update in place": {
			chain: plan.Chain{
				{Verb: plan.UpdateStatus, Before: guarded(1), After: guarded(1, unready)},
				{Verb: plan.Update, Before: guarded(1, unready), After: guarded(1, unready, upgraded)},
			},
			want: "web",
		},
		"one that begins with a grace period": {chain: plan.Chain{{Verb: plan.UpdateStatus, Before: guarded(1), After: guarded(1, unready)}}, want: "web"},
		"a change of sidecars":                {chain: plan.Chain{{Verb: plan.Update, Before: guarded(1), After: guarded(1, upgraded)}}, want: "web"},
		"a deletion for an update":            {chain: recreated(guarded(1)), want: "web"},
		"a deletion for want of replicas, which its webhook evaluates": {
			chain: plan.Chain{{Verb: plan.Delete, Concern: plan.Scale, Before: guarded(1)}},
		},
		"labels":             {chain: plan.Chain{{Verb: plan.Update, Before: guarded(1), After: guarded(1, labelled)}}},
		"a Pod of no budget": {chain: plan.Chain{{Verb: plan.Update, Before: guarded(1, unguarded), After: guarded(1, unguarded, upgraded)}}},
		"a new Pod":          {chain: plan.Chain{{Verb: plan.Create, After: guarded(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			held, err := Writes{newSetup(budget(0)).Evaluator, true}.Permit(t.Context(), tc.chain)
			if held != tc.want || err != nil {
				t.Errorf("held by %q, want %q, error %v", held, tc.want, err)
			}
		})
	}
}

// TestWhatIsRecreatedIsEvaluatedOnce: first as an update, by the controller; the deletion that follows is free.
func TestWhatIsRecreatedIsEvaluatedOnce(t *testing.T) {
	c := newSetup(budget(1))
	writes := Writes{c.Evaluator, true}
	if held, err := writes.Permit(t.Context(), recreated(guarded(1))); held != "" || err != nil {
		t.Fatalf("the first: %q, %v", held, err)
	}
	if held, err := writes.Permit(t.Context(), recreated(guarded(2))); held != "web" || err != nil {
		t.Fatalf("the second: %q, %v", held, err)
	}
	if decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(1), Operation: v1beta1.PubDeleteOperation}); !decision.Allowed() || err != nil {
		t.Fatalf("the deletion of the first: %+v, %v", decision, err)
	}
	if _, ok := c.last().Status.UnavailablePods["web-1"]; !ok || c.writes != 1 {
		t.Errorf("after %d writes: %+v", c.writes, c.last().Status)
	}
}

// TestWhoeverTheBudgetConcernsTakesTurns: those whom the cached budget allows unrecorded do not wait for the others.
func TestWhoeverTheBudgetConcernsTakesTurns(t *testing.T) {
	scaledIn := func(p *corev1.Pod) plan.Chain { return plan.Chain{{Verb: plan.Delete, Concern: plan.Scale, Before: p}} }
	for name, tc := range map[string]struct {
		chain   plan.Chain
		budget  func(*v1beta1.PodUnavailableBudget)
		updates bool
		want    string
	}{
		"a deletion":                               {chain: scaledIn(guarded(1)), want: "web"},
		"a deletion for an update":                 {chain: recreated(guarded(1)), updates: true, want: "web"},
		"a deletion of a Pod that is not ready":    {chain: scaledIn(guarded(1, unready))},
		"a deletion of a Pod of no budget":         {chain: scaledIn(guarded(1, unguarded))},
		"an update":                                {chain: plan.Chain{{Verb: plan.Update, Before: guarded(1), After: guarded(1, upgraded)}}, updates: true, want: "web"},
		"an update where none is evaluated":        {chain: plan.Chain{{Verb: plan.Update, Before: guarded(1), After: guarded(1, upgraded)}}},
		"a change of labels":                       {chain: plan.Chain{{Verb: plan.Update, Before: guarded(1), After: guarded(1, labelled)}}, updates: true},
		"a new Pod":                                {chain: plan.Chain{{Verb: plan.Create, After: guarded(1)}}, updates: true},
		"a Pod that was permitted to change":       {chain: recreated(guarded(1)), updates: true, budget: func(b *v1beta1.PodUnavailableBudget) { b.Status.UnavailablePods = ledger(began, "web-1") }},
		"a Pod of a budget that needs no Pods":     {chain: scaledIn(guarded(1)), budget: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable = 0 }},
		"a budget that allows it is asked in turn": {chain: scaledIn(guarded(1)), budget: func(b *v1beta1.PodUnavailableBudget) { b.Status.UnavailableAllowed = 1 }, want: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(0)
			if tc.budget != nil {
				tc.budget(b)
			}
			c := newSetup(b)
			got := Writes{c.Evaluator, tc.updates}.Asked(t.Context(), tc.chain)
			if got.Name != tc.want || c.reads > 0 {
				t.Errorf("asked is %s after %d live reads, want %q", got, c.reads, tc.want)
			}
		})
	}
}
