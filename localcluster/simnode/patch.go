package simnode

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// statusPatch is a strategic merge patch of a Pod's status: lists are replaced, conditions merged by type.
type statusPatch struct {
	Metadata struct {
		UID types.UID `json:"uid"` // the server refuses the patch for another Pod of the same name
	} `json:"metadata"`
	Status map[string]any `json:"status"`
}

// patchOf is the patch that turns the reported status of a Pod into the wanted one; nil if they are equal. Only what
// differs is in it, as conditions of other writers must not be touched.
func patchOf(pod *corev1.Pod, want *corev1.PodStatus) ([]byte, error) {
	have := &pod.Status
	changes := map[string]any{}
	set := func(name string, before, after any) {
		if !apiequality.Semantic.DeepEqual(before, after) {
			changes[name] = after
		}
	}
	set("observedGeneration", have.ObservedGeneration, want.ObservedGeneration)
	set("phase", have.Phase, want.Phase)
	set("hostIP", have.HostIP, want.HostIP)
	set("hostIPs", have.HostIPs, want.HostIPs)
	set("podIP", have.PodIP, want.PodIP)
	set("podIPs", have.PodIPs, want.PodIPs)
	set("startTime", have.StartTime, want.StartTime)
	set("initContainerStatuses", have.InitContainerStatuses, want.InitContainerStatuses)
	set("containerStatuses", have.ContainerStatuses, want.ContainerStatuses)
	set("ephemeralContainerStatuses", have.EphemeralContainerStatuses, want.EphemeralContainerStatuses)
	if conditions := changedConditions(have, want); len(conditions) > 0 {
		changes["conditions"] = conditions
	}
	if len(changes) == 0 {
		return nil, nil
	}
	patch := statusPatch{Status: changes}
	patch.Metadata.UID = pod.UID
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding status: %w", err)
	}
	return body, nil
}

func changedConditions(have, want *corev1.PodStatus) []any {
	var changed []any
	for i := range want.Conditions {
		condition := &want.Conditions[i]
		if !ownCondition(condition.Type) {
			continue
		}
		if _, before := podutil.GetPodCondition(have, condition.Type); before != nil && sameCondition(before, condition) {
			continue
		}
		changed = append(changed, conditionPatch{
			Type: condition.Type, Status: condition.Status, ObservedGeneration: condition.ObservedGeneration,
			LastTransitionTime: condition.LastTransitionTime,
			Reason:             textOrNull(condition.Reason), Message: textOrNull(condition.Message),
		})
	}
	for i := range have.Conditions {
		kind := have.Conditions[i].Type
		if _, after := podutil.GetPodCondition(want, kind); after == nil && ownCondition(kind) {
			changed = append(changed, map[string]any{"$patch": "delete", "type": kind})
		}
	}
	return changed
}

// conditionPatch is a condition in a patch: an empty reason must be said, or the old one would stay.
type conditionPatch struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	ObservedGeneration int64                   `json:"observedGeneration,omitempty"`
	LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
	Reason             *string                 `json:"reason"`
	Message            *string                 `json:"message"`
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func sameCondition(a, b *corev1.PodCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration
}
