package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventWaits is the reason of the event on an owner whose Pods wait because a PodUnavailableBudget lets no more of them become unavailable.
const EventWaits = "WaitingForPodUnavailableBudget"

// Guard is asked before Pods that name a PodUnavailableBudget are taken out of service. An update in place begins with a status that says that the Pod
// is not ready, which nobody else judges; by the time that its spec changes, it is not available any more.
type Guard interface {
	// Permit returns the name of the budget that does not let a Pod change so now; empty where none stands against it, which is recorded then. after
	// is nil for a Pod that is deleted to be created anew.
	Permit(ctx context.Context, before, after *corev1.Pod) (budget string, err error)
}

// Waiting is the error of a write that was not made because a budget stands against it for the moment. It is none of the write's: the same is asked for
// again a little later.
type Waiting struct {
	// Budget is the name of the PodUnavailableBudget.
	Budget string
}

func (w *Waiting) Error() string {
	return fmt.Sprintf("PodUnavailableBudget %s lets no more of its Pods become unavailable now", w.Budget)
}

// IsWaiting reports whether a write only waits for a budget.
func IsWaiting(err error) bool {
	var waiting *Waiting
	return errors.As(err, &waiting)
}

// Waits returns a hold for each budget that writes wait for, in the order of their names.
func (o Outcome) Waits() []plan.Hold {
	var names []string
	for _, r := range o.Results {
		var waiting *Waiting
		if errors.As(r.Err, &waiting) {
			names = append(names, waiting.Budget)
		}
	}
	slices.Sort(names)
	var holds []plan.Hold
	for _, name := range slices.Compact(names) {
		holds = append(holds, plan.Hold{Why: (&Waiting{name}).Error(), Event: EventWaits, EventType: corev1.EventTypeNormal})
	}
	return holds
}

// permit asks the guard about a chain; Waiting is the error if the chain has to wait.
func (e *Executor) permit(ctx context.Context, chain plan.Chain) error {
	if e.Guard == nil {
		return nil
	}
	before, after, disrupts := disruption(chain)
	if !disrupts {
		return nil
	}
	budget, err := e.Guard.Permit(ctx, before, after)
	if err != nil {
		return fmt.Errorf("asking the budget of %s: %w", before.Name, err)
	}
	if budget != "" {
		return &Waiting{budget}
	}
	return nil
}

// disruption returns a Pod that names a budget as it is before a chain and after it, nil if it is deleted for an update; false where the chain leaves
// it in service as it is. Deletions for other reasons are judged where they arrive.
func disruption(chain plan.Chain) (before, after *corev1.Pod, disrupts bool) {
	first := chain[0]
	before, ok := first.Before.(*corev1.Pod)
	if !ok || before == nil || before.Annotations[keys.RelatedBudget] == "" && before.Annotations[keys.RelatedBudgetOld] == "" {
		return nil, nil, false
	}
	if first.Verb == plan.Delete {
		return before, nil, first.Concern == plan.Rollout
	}
	for _, action := range chain {
		if p, ok := action.After.(*corev1.Pod); ok && p != nil && p.Name == before.Name {
			after = p
			disrupts = disrupts || isReady(before) && !isReady(p)
		}
	}
	return before, after, after != nil && (disrupts || !equality.Semantic.DeepEqual(before.Spec, after.Spec))
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// budgetIsWaiting turns the refusal of a budget, which its webhook gave, into Waiting.
func budgetIsWaiting(err error) error {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return err
	}
	if details := status.Status().Details; details.Kind == keys.BudgetResource {
		return &Waiting{details.Name}
	}
	return err
}
