package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// EventWaits is the reason of the event on an owner whose Pods wait because a PodUnavailableBudget lets no more of them become unavailable.
const EventWaits = "WaitingForPodUnavailableBudget"

// Budgets are asked before each chain of writes that may take a Pod out of service. An update in place begins with a status that says that
// the Pod is not ready, which no webhook checks; by the time that its spec changes, it is not available any more.
type Budgets interface {
	// Asked returns the PodUnavailableBudget that has to be asked about the writes, by what is known without a request: by Permit, or by
	// the webhook for the deletion that they begin with. It has no name if none has anything against them.
	Asked(ctx context.Context, chain plan.Chain) types.NamespacedName
	// Permit returns the name of the PodUnavailableBudget that does not allow the writes now; if empty, they are allowed, and the budget
	// counts them.
	Permit(ctx context.Context, chain plan.Chain) (budget string, err error)
}

// Waiting is the error of a write that was not made because a budget does not allow it for the moment. It is no failure: the same write is
// tried again when the budget changes, or else a little later.
type Waiting struct {
	// Budget is the name of the PodUnavailableBudget.
	Budget string
	// For is how long the budget is not asked again unless it changes.
	For time.Duration
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
		holds = append(holds, plan.Hold{Code: reason.WaitPUB, Why: (&Waiting{Budget: name}).Error(), Event: EventWaits,
			EventType: corev1.EventTypeNormal})
	}
	return holds
}

// WaitFor returns how long it is until a budget may be asked again that writes wait for; false if none waits.
func (o Outcome) WaitFor() (wait time.Duration, waits bool) {
	for _, r := range o.Results {
		var waiting *Waiting
		if errors.As(r.Err, &waiting) && (!waits || waiting.For < wait) {
			wait, waits = waiting.For, true
		}
	}
	return wait, waits
}

// permittedFor is how long the first write after a permission may take. A permission stands for 10 seconds at least, by clocks that may
// differ: a write that came later, because the API server is slow or this process was stopped, would disrupt a Pod that counts again.
const permittedFor = 5 * time.Second

// turn waits for its turn to ask a budget about a chain; Waiting is the error if the budget has refused lately. What it returns is called
// with the answer, and in the end. Asked means that there is a budget to ask.
func (e *Executor) turn(ctx context.Context, owner plan.Object, chain plan.Chain) (answered func(error), asked bool, err error) {
	if e.Budgets == nil {
		return func(error) {}, false, nil
	}
	of := e.Budgets.Asked(ctx, chain)
	if of.Name == "" {
		return func(error) {}, false, nil
	}
	end, wait := e.questions.begin(of, client.ObjectKeyFromObject(owner), e.Now())
	if wait > 0 {
		return nil, true, &Waiting{Budget: of.Name, For: wait}
	}
	return func(err error) { end(err, e.Now()) }, true, nil
}

// permit asks the budgets about a chain; Waiting is the error if the chain has to wait.
func (e *Executor) permit(ctx context.Context, chain plan.Chain) error {
	if e.Budgets == nil {
		return nil
	}
	budget, err := e.Budgets.Permit(ctx, chain)
	if err != nil {
		return fmt.Errorf("asking the budget of %s: %w", chain[0].Object().GetName(), err)
	}
	if budget != "" {
		return &Waiting{Budget: budget, For: firstPause}
	}
	return nil
}

// budgetIsWaiting turns the refusal of a budget, which its webhook gave, into Waiting.
func budgetIsWaiting(err error) error {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return err
	}
	if details := status.Status().Details; details.Kind == keys.BudgetResource {
		return &Waiting{Budget: details.Name, For: firstPause}
	}
	return err
}
