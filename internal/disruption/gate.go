package disruption

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// Gate is where our own controllers ask the judge, before the first write by which they take a Pod out of service.
type Gate struct{ Judge *Judge }

// Permit returns the name of the budget that does not let a Pod change so now; empty where none stands against it. What the controllers recreate is
// judged as an update, too: the deletion that follows is in the ledger then, and passes.
func (g Gate) Permit(ctx context.Context, before, after *corev1.Pod) (string, error) {
	r := Request{Pod: before, Operation: v1beta1.PubUpdateOperation}
	if after != nil {
		if operation, judged := rules.OperationOf(before, after); judged {
			r.Operation = operation
		}
	}
	verdict, err := g.Judge.Permit(ctx, r)
	if err != nil || verdict.Allowed() {
		return "", err
	}
	return verdict.Budget.Name, nil
}
