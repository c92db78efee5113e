package scoping

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// longestRequest is after what time a request that was admitted must have been stored or have failed: an API server gives a request a minute,
// unless it is told otherwise.
const longestRequest = 2 * time.Minute

// linger is how long a note stays at least, for the managers that have not heard of the SidecarSet when it is stored.
const linger = 5 * time.Second

// note is what a SidecarSet selects that has been admitted and may not be stored yet.
//
// Wire: in the annotation keys.PodScopePending of the webhook configuration, as a JSON list.
type note struct {
	Name string `json:"name"`
	// UID is that of the object, which a new one has before it is stored.
	UID types.UID `json:"uid,omitempty"`
	// Generation is that of the stored object which the request changes, 0 if it creates it. Once a later one is stored, this request has been
	// stored or never will be.
	Generation        int64                 `json:"generation,omitempty"`
	At                metav1.Time           `json:"at"`
	Selector          *metav1.LabelSelector `json:"selector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// noteOf returns the note for a change of a SidecarSet, before which is nil when it is created.
func noteOf(before, after *v1beta1.SidecarSet, now time.Time) note {
	n := note{
		Name: after.Name, UID: after.UID, At: metav1.NewTime(now.Truncate(time.Second)),
		Selector: after.Spec.Selector, NamespaceSelector: after.Spec.NamespaceSelector,
	}
	if before != nil {
		n.Generation = before.Generation
	}
	return n
}

// isSeenIn reports whether the SidecarSet has come so far that nothing can come of the request any more that it does not show.
func (n note) isSeenIn(set *v1beta1.SidecarSet) bool {
	return set.UID == n.UID && set.Generation > n.Generation
}

// end returns when the note is to be forgotten: once every manager knows the SidecarSet, or the request must have failed.
func (n note) end(stored []v1beta1.SidecarSet) time.Time {
	for i := range stored {
		if n.isSeenIn(&stored[i]) {
			return n.At.Add(linger)
		}
	}
	return n.At.Add(longestRequest)
}

// readNotes returns the notes of an annotation.
func readNotes(text string) ([]note, error) {
	if text == "" {
		return nil, nil
	}
	var notes []note
	err := json.Unmarshal([]byte(text), &notes)
	return notes, err
}

// writeNotes returns the annotation, which is empty if there are no notes.
func writeNotes(notes []note) (string, error) {
	if len(notes) == 0 {
		return "", nil
	}
	text, err := json.Marshal(notes)
	return string(text), err
}

// with returns the notes and one more, in place of an earlier one that only differs in its time.
func with(notes []note, more note) []note {
	same := func(n note) bool {
		n.At = more.At
		return equality.Semantic.DeepEqual(n, more)
	}
	return append(slices.DeleteFunc(slices.Clone(notes), same), more)
}
