// Package spread gives the Pods of a workload to the subsets of a WorkloadSpread.
//
// What a status says of a subset is a ledger:
//
//	room = maxReplicas − replicas − creatingPods + deletingPods
//
// Here replicas are the active Pods that whoever counted last had seen, and creatingPods is room that was given away since, or set aside to
// be given away. A creation takes room by an entry in creatingPods, written over the version that it was computed from, before its Pod
// exists. An entry leaves when its Pod is seen, active or not, so that every Pod is in the one or in the other, and
//
//	active Pods of a subset  ≤  maxReplicas
//
// as long as nobody counts who has seen less than was seen when an entry left: podVersion says how much that is. Pods that are taken over,
// and a maxReplicas that is lowered, can make it more: such Pods have the lowest cost of deletion.
package spread

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// Unlimited is the limit of a subset that takes as many Pods as there are, and the room in it.
//
// Wire: missingReplicas of such a subset.
const Unlimited int32 = -1

// Matched is the WorkloadSpread and the subset that a Pod is given to.
//
// Wire: in the annotation keys.MatchedWorkloadSpread, as JSON.
type Matched struct {
	Name   string `json:"name"`
	Subset string `json:"subset"`
	// UID is the entry of creatingPods by which the Pod took room; empty if its subset has no limit, nor anything else to count it for.
	UID string `json:"uid,omitempty"`
}

// String returns the annotation.
func (m Matched) String() string {
	text, _ := json.Marshal(m) // strings alone, which can be written
	return string(text)
}

// MatchedOf returns what the annotation of a Pod says; false if it says nothing that can be read.
func MatchedOf(p *corev1.Pod) (Matched, bool) {
	text := p.Annotations[keys.MatchedWorkloadSpread]
	if text == "" {
		return Matched{}, false
	}
	var m Matched
	err := json.Unmarshal([]byte(text), &m)
	return m, err == nil && m.Name != ""
}

// Reference is a workload: its version does not count.
type Reference struct {
	schema.GroupKind
	Name string
}

// TargetOf returns the workload of a WorkloadSpread; a zero one if it names none.
func TargetOf(s *v1beta1.WorkloadSpread) Reference {
	t := s.Spec.TargetReference
	if t == nil {
		return Reference{}
	}
	return Reference{schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind(), t.Name}
}

// Selects reports whether the filter of a WorkloadSpread lets Pods with these labels through; without a selector it lets all.
func Selects(s *v1beta1.WorkloadSpread, of map[string]string) bool {
	if s.Spec.TargetFilter == nil || s.Spec.TargetFilter.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.TargetFilter.Selector)
	return err == nil && selector.Matches(labels.Set(of))
}

// ReferenceOf returns the owner that a reference names.
func ReferenceOf(o *metav1.OwnerReference) Reference {
	return Reference{schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind(), o.Name}
}

// The kinds of workloads that the rules know, as schema.GroupKind writes them.
const (
	deployment          = "Deployment.apps"
	replicaSet          = "ReplicaSet.apps"
	statefulSet         = "StatefulSet.apps"
	job                 = "Job.batch"
	cloneSet            = "CloneSet.apps.kruise.io"
	advancedStatefulSet = "StatefulSet.apps.kruise.io"
)

// IsBuiltIn reports whether workloads of a kind can be spread in any installation.
func IsBuiltIn(kind schema.GroupKind) bool {
	return slices.Contains([]string{deployment, replicaSet, statefulSet, job, cloneSet, advancedStatefulSet}, kind.String())
}

// ByOrdinal reports whether the Pods of a kind are given to subsets by their ordinals.
func ByOrdinal(kind schema.GroupKind) bool {
	return slices.Contains([]string{statefulSet, advancedStatefulSet}, kind.String())
}

// HasCosts reports whether workloads of a kind delete Pods of a lower cost first. Of kinds that the configuration lists, it says so.
func HasCosts(kind schema.GroupKind) bool {
	return slices.Contains([]string{deployment, replicaSet, cloneSet}, kind.String())
}

// ThroughReplicaSets reports whether the Pods of a kind are made by ReplicaSets that it makes.
func ThroughReplicaSets(kind schema.GroupKind) bool { return kind.String() == deployment }

// MayOwn reports whether a workload may be above the controller of a Pod, as far as kinds and names tell: Deployments are above ReplicaSets
// that have their name and a hash, other kinds that are built in own Pods themselves, and of all others nothing is known.
func MayOwn(target, owner Reference) bool {
	if !IsBuiltIn(target.GroupKind) {
		return true
	}
	return target.GroupKind.String() == deployment && owner.GroupKind.String() == replicaSet &&
		strings.HasPrefix(owner.Name, target.Name+"-")
}

// VersionOf returns the version that a Pod of a workload counts in.
func VersionOf(kind schema.GroupKind, p *corev1.Pod) string {
	version := ""
	switch kind.String() {
	case deployment, replicaSet:
		version = p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	case cloneSet:
		version = p.Labels[appsv1.ControllerRevisionHashLabelKey]
		version = version[strings.LastIndexByte(version, '-')+1:]
	}
	if version == "" {
		return v1beta1.VersionIgnored
	}
	return version
}

// OrdinalOf returns the ordinal at the end of the name of a StatefulSet's Pod; false if there is none.
func OrdinalOf(name string) (int32, bool) {
	ordinal, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 32)
	return int32(ordinal), err == nil && ordinal >= 0
}

// SurgesOnly reports whether the versions of a kind count only while it has more Pods than replicas. CloneSets change the version of Pods
// in place: in each version by itself there could be room for a Pod, and none in all.
func SurgesOnly(kind schema.GroupKind) bool { return kind.String() == cloneSet }

// MostOf returns how many Pods a CloneSet has at most: during an update more than its replicas.
func MostOf(set *v1beta1.CloneSet) int32 {
	replicas := int32(1)
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil || set.Status.UpdatedReplicas >= replicas && set.Status.ObservedGeneration == set.Generation {
		return replicas
	}
	surge, err := budget.Scaled(update.MaxSurge, int(replicas), budget.Up)
	if err != nil {
		return replicas
	}
	return replicas + int32(surge)
}

// Limits returns the most Pods of each subset, of a workload that is to have so many Pods in all. 30% of 10 is 3, 33% of 10 is 4.
func Limits(s *v1beta1.WorkloadSpread, total int32) ([]int32, error) {
	out := make([]int32, len(s.Spec.Subsets))
	for i := range s.Spec.Subsets {
		out[i] = Unlimited
		of := &s.Spec.Subsets[i]
		if of.MaxReplicas == nil {
			continue
		}
		var err error
		if out[i], err = bound(of.Name, "maxReplicas", of.MaxReplicas, total); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bound resolves a field of a subset that is a number of Pods, or a percentage of all.
func bound(subset, field string, value *intstr.IntOrString, total int32) (int32, error) {
	number, err := budget.Scaled(value, int(total), budget.Up)
	if err != nil || number < 0 {
		return 0, fmt.Errorf("%s %s of subset %s is neither a number nor a percentage", field, value, subset)
	}
	return int32(min(number, math.MaxInt32)), nil
}

// NeedsTotal reports whether the limits depend on how many Pods the workload is to have.
func NeedsTotal(s *v1beta1.WorkloadSpread) bool {
	return slices.ContainsFunc(s.Spec.Subsets, func(one v1beta1.WorkloadSpreadSubset) bool {
		return one.MaxReplicas != nil && one.MaxReplicas.Type == intstr.String ||
			one.MinReplicas != nil && one.MinReplicas.Type == intstr.String
	})
}

// IndexOf returns the place of a subset; -1 if there is none of that name.
func IndexOf(s *v1beta1.WorkloadSpread, subset string) int {
	return slices.IndexFunc(s.Spec.Subsets, func(one v1beta1.WorkloadSpreadSubset) bool { return one.Name == subset })
}

// IsSchedulable reports whether a subset takes Pods: it does not for a while after Pods could not be scheduled there. That counts for all
// versions.
func IsSchedulable(s *v1beta1.WorkloadSpread, subset string) bool {
	c := schedulable(statusOf(s.Status.SubsetStatuses, subset))
	return c == nil || c.Status != "False"
}

// IsStuck reports whether a Pod has waited too long to be scheduled, or how long it still may; neither for a Pod that does not wait.
func IsStuck(p *corev1.Pod, after time.Duration, now time.Time) (stuck bool, wait time.Duration) {
	if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" {
		return false, 0
	}
	if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	}) {
		return false, 0
	}
	if wait := p.CreationTimestamp.Add(after).Sub(now); wait > 0 {
		return false, wait
	}
	return true, 0
}

// Returns reports whether Pods are moved back to subsets that take Pods again.
func Returns(s *v1beta1.WorkloadSpread) bool {
	strategy := s.Spec.ScheduleStrategy
	return strategy.Type == v1beta1.AdaptiveWorkloadSpread && strategy.Adaptive != nil && strategy.Adaptive.ReturnPods
}

// RescheduleAfter returns how long a Pod may wait to be scheduled; 0 if for ever.
func RescheduleAfter(s *v1beta1.WorkloadSpread) time.Duration {
	strategy := s.Spec.ScheduleStrategy
	if strategy.Type != v1beta1.AdaptiveWorkloadSpread || strategy.Adaptive == nil || strategy.Adaptive.RescheduleCriticalSeconds == nil {
		return 0
	}
	return time.Duration(*strategy.Adaptive.RescheduleCriticalSeconds) * time.Second
}
