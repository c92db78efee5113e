package disruption

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Writes evaluates the writes of our own controllers, before the first one by which they take a Pod out of service.
type Writes struct{ Evaluator *Evaluator }

// Permit returns the name of the budget that refuses that a Pod changes so now; empty where none does. A Pod that the controllers recreate
// is evaluated as an update, too: the deletion that follows is in the ledger then, and passes.
func (w Writes) Permit(ctx context.Context, chain plan.Chain) (string, error) {
	before, after, disrupts := disrupted(chain)
	if !disrupts {
		return "", nil
	}
	r := Request{Pod: before, Operation: v1beta1.PubUpdateOperation}
	if after != nil {
		if operation, guarded := rules.OperationOf(before, after); guarded {
			r.Operation = operation
		}
	}
	decision, err := w.Evaluator.Evaluate(ctx, r)
	if err != nil || decision.Allowed() {
		return "", err
	}
	return decision.Budget.Name, nil
}

// disrupted returns a Pod that names a budget as it is before a chain and after it, nil if it is deleted for an update; false where the
// chain leaves it in service as it is. Deletions for other reasons are evaluated by the webhook.
func disrupted(chain plan.Chain) (before, after *corev1.Pod, disrupts bool) {
	first := chain[0]
	before, ok := first.Before.(*corev1.Pod)
	if !ok || before == nil || rules.Related(before.Annotations) == "" {
		return nil, nil, false
	}
	if first.Verb == plan.Delete {
		return before, nil, first.Concern == plan.Rollout
	}
	for _, action := range chain {
		if p, ok := action.After.(*corev1.Pod); ok && p != nil && p.Name == before.Name {
			after = p
			disrupts = disrupts || pod.IsReady(before) && !pod.IsReady(p)
		}
	}
	return before, after, after != nil && (disrupts || !equality.Semantic.DeepEqual(before.Spec, after.Spec))
}
