package webhookconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

const (
	// requestTimeout is after what time a request that was admitted must have been stored or have failed: an API server gives a request a
	// minute, unless it is told otherwise.
	requestTimeout = 2 * time.Minute
	// pendingMinimum is how long a pending SidecarSet stays at least, for the managers whose caches don't show it yet when it is stored.
	pendingMinimum = 5 * time.Second
	// maxPending is how many SidecarSets may be admitted and not be stored yet, and maxPendingSize how many bytes the annotation may have
	// with one more. Whoever reaches a manager can tell it of SidecarSets that nobody stores: these must not grow without bound.
	maxPending, maxPendingSize = 64, 64 << 10
)

// pending is a SidecarSet that has been admitted and may not be stored yet.
//
// Wire: in the annotation keys.PodScopePending of the webhook configuration, as a JSON list.
type pending struct {
	Name string `json:"name"`
	// UID is that of the object, which a new one has before it is stored.
	UID types.UID `json:"uid,omitempty"`
	// Generation is that of the stored object which the request changes, 0 if it creates it. Once a later one is stored, this request has
	// been stored or never will be.
	Generation        int64                 `json:"generation,omitempty"`
	At                metav1.Time           `json:"at"`
	Selector          *metav1.LabelSelector `json:"selector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// newPending returns what is pending with a change of a SidecarSet; before is nil when it is created.
func newPending(before, after *v1beta1.SidecarSet, now time.Time) pending {
	p := pending{
		Name: after.Name, UID: after.UID, At: metav1.NewTime(now.Truncate(time.Second)),
		Selector: after.Spec.Selector, NamespaceSelector: after.Spec.NamespaceSelector,
	}
	if before != nil {
		p.Generation = before.Generation
	}
	return p
}

// isOlderThan reports whether the SidecarSet shows whatever the request has led to.
func (p pending) isOlderThan(set *v1beta1.SidecarSet) bool {
	return set.UID == p.UID && set.Generation > p.Generation
}

// isStored reports whether what the request has led to is among the stored SidecarSets.
func (p pending) isStored(stored []v1beta1.SidecarSet) bool {
	return slices.ContainsFunc(stored, func(set v1beta1.SidecarSet) bool { return p.isOlderThan(&set) })
}

// canBeStored reports whether the API server would store the request: a change only of what it was made from. If that has changed since,
// the API server asks again.
func (p pending) canBeStored(stored []v1beta1.SidecarSet) bool {
	return p.Generation == 0 || slices.ContainsFunc(stored, func(set v1beta1.SidecarSet) bool {
		return set.Name == p.Name && set.UID == p.UID && set.Generation == p.Generation
	})
}

// expiry returns when it is pending no more: once every manager knows the SidecarSet, or the request must have failed.
func (p pending) expiry(stored []v1beta1.SidecarSet) time.Time {
	if p.isStored(stored) {
		return p.At.Add(pendingMinimum)
	}
	return p.At.Add(requestTimeout)
}

// parsePending reads the annotation.
func parsePending(text string) ([]pending, error) {
	if text == "" {
		return nil, nil
	}
	var all []pending
	err := json.Unmarshal([]byte(text), &all)
	return all, err
}

// formatPending returns the annotation, which is empty if nothing is pending.
func formatPending(all []pending) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// withPending returns all and one more, which replaces an earlier one that differs in its time only. It fails if that would be too many.
func withPending(all []pending, more pending, stored []v1beta1.SidecarSet) ([]pending, error) {
	same := func(p pending) bool {
		p.At = more.At
		return equality.Semantic.DeepEqual(p, more)
	}
	out := append(slices.DeleteFunc(slices.Clone(all), same), more)
	missing := 0
	for _, p := range out {
		if !p.isStored(stored) {
			missing++
		}
	}
	text, err := formatPending(out)
	if err != nil {
		return nil, err
	}
	if missing > maxPending || len(text) > maxPendingSize {
		return nil, fmt.Errorf("%d SidecarSets, with selectors of %d bytes in all, have been admitted and are not stored yet: "+
			"try again when they are, or in %s if they never are", missing, len(text), requestTimeout)
	}
	return out, nil
}
