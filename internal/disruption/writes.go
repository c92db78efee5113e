package disruption

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Writes evaluates the writes of our own controllers, before the first one by which they take a Pod out of service.
type Writes struct {
	Evaluator *Evaluator
	// Updates has updates evaluated here. Deletions are evaluated by their webhook.
	Updates bool
}

// Asked returns the budget that is asked about a chain, here or by the webhook. It has no name if the chain disrupts nothing, or if the
// budget that the cache has allows it unrecorded: then it must not wait for what others want.
func (w Writes) Asked(ctx context.Context, chain plan.Chain) types.NamespacedName {
	r, disrupts := requestOf(chain)
	switch {
	case !disrupts && chain[0].Verb == plan.Delete:
		r.Operation = v1beta1.PubDeleteOperation
	case !disrupts || !w.Updates:
		return types.NamespacedName{}
	}
	if r.Pod == nil || rules.IsExempt(r.Pod) {
		return types.NamespacedName{}
	}
	return w.Evaluator.asked(ctx, r)
}

// Permit returns the name of the budget that refuses that a Pod changes so now; empty where none does. A Pod that the controllers recreate
// is evaluated as an update, too: the deletion that follows is in the ledger then, and passes.
func (w Writes) Permit(ctx context.Context, chain plan.Chain) (string, error) {
	r, disrupts := requestOf(chain)
	if !disrupts || !w.Updates {
		return "", nil
	}
	decision, err := w.Evaluator.Evaluate(ctx, r)
	if err != nil || decision.Allowed() {
		return "", err
	}
	return decision.Budget.Name, nil
}

// requestOf returns what a chain does to a Pod that names a budget; false where it leaves it in service as it is, or deletes it for another
// reason than an update, which the webhook evaluates.
func requestOf(chain plan.Chain) (r Request, disrupts bool) {
	first := chain[0]
	before, ok := first.Before.(*corev1.Pod)
	if !ok || before == nil || rules.Related(before.Annotations) == "" {
		return Request{}, false
	}
	r = Request{Pod: before, Operation: v1beta1.PubUpdateOperation}
	if first.Verb == plan.Delete {
		return r, first.Concern == plan.Rollout
	}
	var after *corev1.Pod
	for _, action := range chain {
		if p, ok := action.After.(*corev1.Pod); ok && p != nil && p.Name == before.Name {
			after = p
			disrupts = disrupts || pod.IsReady(before) && !pod.IsReady(p)
		}
	}
	if after == nil {
		return r, false
	}
	if operation, guarded := rules.OperationOf(before, after); guarded {
		r.Operation = operation
	}
	return r, disrupts || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}
