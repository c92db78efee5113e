package disruption

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

const (
	// DisruptedFor is how long a permission to delete or evict a Pod stands without a deletion being seen.
	DisruptedFor = 20 * time.Second
	// UnavailableFor is how long a permission to update a Pod stands before the Pod counts by its state again.
	UnavailableFor = 10 * time.Second
	// skew is by how much the clocks of those who write the ledger, create Pods and read both may differ without harm.
	skew = 5 * time.Second
	// MostEntries is the greatest number of permissions that may be open at once. Beyond it nothing is permitted: something is wrong.
	MostEntries = 2000
)

// Ledger is what was permitted and may not be seen yet: the times of the permissions, by the names of the Pods.
//
// Wire: it is stored in the status of the budget, and other software may have written it.
type Ledger struct {
	// Disrupted were permitted to be deleted or evicted, Unavailable to be updated.
	Disrupted, Unavailable map[string]metav1.Time
}

// LedgerOf returns the ledger in a status, which it shares memory with.
func LedgerOf(s *v1beta1.PodUnavailableBudgetStatus) Ledger {
	return Ledger{Disrupted: s.DisruptedPods, Unavailable: s.UnavailablePods}
}

// Len returns the number of open permissions.
func (l Ledger) Len() int { return len(l.Disrupted) + len(l.Unavailable) }

// IsFull reports whether so many permissions are open that nothing more is permitted.
func (l Ledger) IsFull() bool { return l.Len() > MostEntries }

// Holds reports whether a permission for the Pod is open. One for a former Pod of its name, as replicas of StatefulSets have it, is none.
func (l Ledger) Holds(p *corev1.Pod) bool {
	for _, entries := range []map[string]metav1.Time{l.Disrupted, l.Unavailable} {
		if at, ok := entries[p.Name]; ok && isOf(p, at) {
			return true
		}
	}
	return false
}

// permits reports whether a permission for the Pod certainly still stands, by whatever clock: a version of the ledger that is behind may
// hold one that has ended.
func (l Ledger) permits(p *corev1.Pod, now time.Time) bool {
	for lasts, entries := range map[time.Duration]map[string]metav1.Time{DisruptedFor: l.Disrupted, UnavailableFor: l.Unavailable} {
		if at, ok := entries[p.Name]; ok && isOf(p, at) && now.Before(at.Add(lasts-skew)) {
			return true
		}
	}
	return false
}

// isOf reports whether a permission of that time can be for the Pod: it is not older than the Pod.
func isOf(p *corev1.Pod, at metav1.Time) bool { return !p.CreationTimestamp.After(at.Add(skew)) }

// Pruned is a ledger less the entries that are done with.
type Pruned struct {
	Ledger Ledger
	// Overdue are the Pods whose deletion was permitted and did not happen in time, Expired all whose time is over, in the order of names.
	Overdue, Expired []string
	// Recheck is when the next entry ends by time alone, zero where none does.
	Recheck time.Duration
}

// Seen is by what a ledger is pruned.
type Seen struct {
	// Pods are those of the budget.
	Pods []*corev1.Pod
	// Live means that they were read around the cache. Entries of Pods that are not there stay until their time is over: to the cache, by
	// which the next count may be, these Pods may still be available.
	Live bool
	// Gone are Pods that the cache has and the API server has not. Their entries stay until the cache has not either.
	Gone []string
	Now  time.Time
}

// Prune leaves out of the ledger the entries of Pods that are gone, finished, being deleted or another's by now, and those whose time is
// over. Entries that come from the future, by a clock that is far ahead, begin now: they would stay for too long.
func (l Ledger) Prune(by Seen) Pruned {
	active := make(map[string]*corev1.Pod, len(by.Pods))
	for _, p := range by.Pods {
		if pod.IsActive(p) {
			active[p.Name] = p
		}
	}
	var out Pruned
	keep := func(entries map[string]metav1.Time, lasts time.Duration) (kept map[string]metav1.Time, overdue []string) {
		for name, at := range entries {
			p, there := active[name]
			gone := slices.Contains(by.Gone, name)
			if there && !isOf(p, at) || !there && !gone && !by.Live {
				continue
			}
			if at.After(by.Now.Add(lasts)) {
				at = metav1.NewTime(by.Now.Truncate(time.Second))
			}
			left := at.Add(lasts).Sub(by.Now)
			if left <= 0 && !gone {
				overdue = append(overdue, name)
				continue
			}
			if kept == nil {
				kept = make(map[string]metav1.Time, len(entries))
			}
			kept[name] = at
			if left > 0 && (out.Recheck == 0 || left < out.Recheck) {
				out.Recheck = left
			}
		}
		return kept, overdue
	}
	out.Ledger.Disrupted, out.Overdue = keep(l.Disrupted, DisruptedFor)
	out.Ledger.Unavailable, out.Expired = keep(l.Unavailable, UnavailableFor)
	out.Expired = append(out.Expired, out.Overdue...)
	slices.Sort(out.Overdue)
	slices.Sort(out.Expired)
	return out
}

// With returns the ledger with the permission for a Pod: an update goes to those that are unavailable for a while, and so does a resize,
// after which no deletion is to be waited for.
func (l Ledger) With(name string, operation v1beta1.PubOperation, at time.Time) Ledger {
	entry := map[string]metav1.Time{name: metav1.NewTime(at.Truncate(time.Second))}
	switch operation {
	case v1beta1.PubUpdateOperation, v1beta1.PubResizeOperation:
		l.Unavailable = joined(l.Unavailable, entry)
	default:
		l.Disrupted = joined(l.Disrupted, entry)
	}
	return l
}

func joined(a, b map[string]metav1.Time) map[string]metav1.Time {
	out := make(map[string]metav1.Time, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

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
	// Free means that the budget does not guard against the request, or has counted it already.
	Free Answer = "free"
	// Needless means that the budget needs no Pods at this moment, and so does not guard against anything.
	Needless Answer = "needless"
	// Granted means that the request may go on once it is in the ledger.
	Granted Answer = "granted"
	// Refused means that too few Pods would be left.
	Refused Answer = "refused"
	// Unknown means that the status speaks of another spec than the present one, if of any.
	Unknown Answer = "unknown"
	// LedgerFull means that the ledger is full of what has not been seen yet.
	LedgerFull Answer = "ledger full"
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
	case !Protects(b, r.Operation, r.Resizing), ledger.permits(r.Pod, r.Now):
		return Free, nil
	case b.Status.ObservedGeneration != b.Generation:
		return Unknown, nil
	case b.Status.DesiredAvailable == 0:
		return Needless, nil
	case ledger.IsFull():
		return LedgerFull, nil
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
