package sidecar

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Upgradable is the condition of a Pod that tells, for each SidecarSet, whether its sidecars can be updated in place.
//
// Wire: the message is JSON from the SidecarSet's name to true or false.
const Upgradable corev1.PodConditionType = "SidecarSetUpgradable"

// SetUpgradable notes on the Pod whether the sidecars of a set can be updated in place, and forgets sets that are gone. It reports whether anything
// changed.
func SetUpgradable(p *corev1.Pod, set string, upgradable bool, at At) bool {
	said := upgradables(p)
	for name := range said {
		if !at.Exists(name) || !slices.Contains(InjectedBy(p.Annotations), name) {
			delete(said, name)
		}
	}
	said[set] = upgradable
	message, err := json.Marshal(said)
	if err != nil {
		panic(fmt.Sprintf("encoding a condition: %v", err)) // names and truth values can be encoded
	}
	want := corev1.PodCondition{Type: Upgradable, Status: corev1.ConditionTrue, Reason: "AllSidecarsetUpgradable", Message: string(message)}
	for _, can := range said {
		if !can {
			want.Status, want.Reason = corev1.ConditionFalse, "UpdateImmutableField"
		}
	}
	old := pod.Condition(p, Upgradable)
	if old != nil && old.Status == want.Status && old.Reason == want.Reason && old.Message == want.Message {
		return false
	}
	pod.SetCondition(p, want, at.Now)
	return true
}

// At is when a condition is written, and which SidecarSets there are then.
type At struct {
	Now    time.Time
	Exists func(set string) bool
}

// TellsUpgradable reports whether a Pod tells of any SidecarSet whether its sidecars can be updated in place.
func TellsUpgradable(p *corev1.Pod) bool { return pod.Condition(p, Upgradable) != nil }

// IsNoteStale reports whether what the Pod says of this set is not true any more, or is missing after an update whose second write did not come about,
// or whether it speaks of a set that is gone.
func (s *Standing) IsNoteStale(set string, exists func(set string) bool) bool {
	said := upgradables(s.Pod)
	for name := range said {
		if !exists(name) {
			return true
		}
	}
	can, says := said[set]
	return says && !can && s.Upgradable || !says && s.Updated && s.begun
}

// upgradables returns what the Pod says of each set; what can't be read says nothing.
func upgradables(p *corev1.Pod) map[string]bool {
	said := map[string]bool{}
	if c := pod.Condition(p, Upgradable); c != nil {
		if err := json.Unmarshal([]byte(c.Message), &said); err != nil || said == nil {
			return map[string]bool{}
		}
	}
	return said
}
