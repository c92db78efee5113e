package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// Request is what somebody wants to do to a Pod.
type Request struct {
	// Pod is the Pod as it is now.
	Pod       *corev1.Pod
	Operation v1beta1.PubOperation
	Resizing  Resizing
	Now       time.Time
}

// Answer is what a budget says to a request.
type Answer string

const (
	// Free means that the request is none of the budget's business, or has been counted already.
	Free Answer = "free"
	// Granted means that the request may go on once it is in the ledger.
	Granted Answer = "granted"
	// Refused means that too few Pods would be left.
	Refused Answer = "refused"
	// Unknown means that the status speaks of another spec than the present one, if of any.
	Unknown Answer = "unknown"
	// Swamped means that the ledger is full of what has not been seen yet.
	Swamped Answer = "swamped"
)

// IsExempt reports whether no budget is asked about the Pod: a user has freed it, or it is not available anyway.
func IsExempt(p *corev1.Pod) bool { return IsFree(p) || !Available(p) }

// Answer answers the request by the numbers and the ledger in the status of the budget. It fails if the budget can't be read.
func (r Request) Answer(b *v1beta1.PodUnavailableBudget) (Answer, error) {
	if ignored, err := isIgnored(b, r.Pod); ignored || err != nil {
		return Free, err
	}
	ledger := LedgerOf(&b.Status)
	switch {
	case !Protects(b, r.Operation, r.Resizing), ledger.Holds(r.Pod):
		return Free, nil
	case b.Status.ObservedGeneration != b.Generation:
		return Unknown, nil
	case b.Status.DesiredAvailable == 0:
		return Free, nil
	case ledger.IsFull():
		return Swamped, nil
	case b.Status.UnavailableAllowed <= 0:
		return Refused, nil
	default:
		return Granted, nil
	}
}

func isIgnored(b *v1beta1.PodUnavailableBudget, p *corev1.Pod) (bool, error) {
	if b.Spec.IgnoredPodSelector == nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.IgnoredPodSelector)
	if err != nil {
		return false, fmt.Errorf("reading ignoredPodSelector of PodUnavailableBudget %s: %w", b.Name, err)
	}
	return !selector.Empty() && selector.Matches(labels.Set(p.Labels)), nil
}

// Record notes in a status that the request was granted, and takes it off what is allowed.
func (r Request) Record(s *v1beta1.PodUnavailableBudgetStatus) {
	ledger := LedgerOf(s).With(r.Pod.Name, r.Operation, r.Now)
	s.DisruptedPods, s.UnavailablePods = ledger.Disrupted, ledger.Unavailable
	s.UnavailableAllowed = max(0, s.UnavailableAllowed-1)
}
