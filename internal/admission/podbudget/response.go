package podbudget

import (
	"fmt"
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/disruption"
)

// retryAfter is how many seconds a client that evicts is to wait.
const retryAfter = 10

// noneAllowed begins the message where too few Pods are available. Wire: filters of logs look for it.
const noneAllowed = "pub unavailable allowed is negative"

// denial returns the response to a denied request. Clients that evict try again after status 429, and give up after status 403.
func denial(r *disruption.Request, v disruption.Decision) *metav1.Status {
	status := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message(r, v),
		Details: &metav1.StatusDetails{
			Group: v1beta1.GroupVersion.Group, Kind: keys.BudgetResource, Name: v.Budget.Name,
			Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause(v)}},
		},
	}
	if r.Operation == v1beta1.PubEvictOperation {
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		status.Details.RetryAfterSeconds = retryAfter
	}
	return status
}

func message(r *disruption.Request, v disruption.Decision) string {
	budget := "PodUnavailableBudget " + v.Budget.Name
	switch v.Refused {
	case disruption.Kubernetes:
		return fmt.Sprintf("PodDisruptionBudget %s does not let Pod %s be evicted now; %s was not asked", v.PodDisruptionBudget, r.Pod.Name,
			budget)
	case disruption.LedgerFull:
		return fmt.Sprintf("%s has too many unavailable not confirmed: permissions for %d Pods are open, nothing more is permitted "+
			"until they have been seen to be used",
			budget, len(v.Budget.Status.DisruptedPods)+len(v.Budget.Status.UnavailablePods))
	case disruption.Contended:
		return fmt.Sprintf("timed out waiting for a turn to write the ledger of %s, which many others write: try again", budget)
	}
	s := v.Budget.Status
	return fmt.Sprintf("%s: %s does not let Pod %s become unavailable (%s): it needs %d available Pods, has %d and so allows %d; "+
		"to go on all the same, annotate the Pod with %s=true or change the budget",
		noneAllowed, budget, r.Pod.Name, r.Operation, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed, keys.NoProtect)
}

// cause has the words of the API server for its own budgets, which clients show to users.
func cause(v disruption.Decision) string {
	if v.Refused == disruption.Kubernetes {
		return fmt.Sprintf("The disruption budget %s allows no eviction currently", v.PodDisruptionBudget)
	}
	return fmt.Sprintf("The budget %s needs %d available pods and has %d currently", v.Budget.Name, v.Budget.Status.DesiredAvailable,
		v.Budget.Status.CurrentAvailable)
}
