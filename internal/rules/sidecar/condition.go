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

// SetUpgradable sets in the condition whether the sidecars of a set can be updated in place, and drops sets that are gone. It reports
// whether anything changed.
func SetUpgradable(p *corev1.Pod, set string, upgradable bool, at At) bool {
	stored := upgradables(p)
	for name := range stored {
		if !at.Exists(name) || !slices.Contains(InjectedBy(p.Annotations), name) {
			delete(stored, name)
		}
	}
	stored[set] = upgradable
	message, err := json.Marshal(stored)
	if err != nil {
		panic(fmt.Sprintf("encoding a condition: %v", err)) // names and truth values can be encoded
	}
	want := corev1.PodCondition{Type: Upgradable, Status: corev1.ConditionTrue, Reason: "AllSidecarsetUpgradable", Message: string(message)}
	for _, can := range stored {
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

// HasUpgradable reports whether a Pod has the condition.
func HasUpgradable(p *corev1.Pod) bool { return pod.Condition(p, Upgradable) != nil }

// IsConditionStale reports whether what the Pod says of this set is not true any more, or is missing after an update whose second write did
// not come about, or whether it speaks of a set that is gone.
func (s *PodStatus) IsConditionStale(set string, exists func(set string) bool) bool {
	stored := upgradables(s.Pod)
	for name := range stored {
		if !exists(name) {
			return true
		}
	}
	can, has := stored[set]
	return has && !can && s.Upgradable || !has && s.Updated && s.begun
}

// upgradables returns the message of the condition, by set; nothing if it can't be read.
func upgradables(p *corev1.Pod) map[string]bool {
	stored := map[string]bool{}
	if c := pod.Condition(p, Upgradable); c != nil {
		if err := json.Unmarshal([]byte(c.Message), &stored); err != nil || stored == nil {
			return map[string]bool{}
		}
	}
	return stored
}
