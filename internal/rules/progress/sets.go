package progress

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Reasons of condition SubsetUpdated of a UnitedDeployment: it pauses after a wave, works at one, or has used its budget up.
const (
	wavePaused    = "WavePaused"
	waveUnderWay  = "WaitingForWave"
	waitForBudget = "WaitingForBudget"
)

func codeOfSubsets(held string) reason.Code {
	switch held {
	case waveUnderWay:
		return reason.WaitEarlierWave
	case waitForBudget:
		return reason.WaitBudget
	}
	return ""
}

func unitedDeployment(o *v1beta1.UnitedDeployment) Progress {
	s := o.Status
	p := Progress{
		Phase: Updating, Updated: s.UpdatedReplicas, Wanted: value(o.Spec.Replicas, s.Replicas), Total: value(o.Spec.Replicas, s.Replicas),
		Ready: s.UpdatedReadyReplicas, Available: s.ReadyReplicas, Seen: seen(s.ObservedGeneration, o.ObjectMeta),
	}
	get := func(name v1beta1.UnitedDeploymentConditionType) told {
		return conditionOf(s.Conditions, string(name), func(c v1beta1.UnitedDeploymentCondition) told {
			return told{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime}
		})
	}
	updated, subsets := get(v1beta1.UnitedDeploymentUpdated), get(v1beta1.UnitedDeploymentSubsetUpdated)
	failure := get(v1beta1.UnitedDeploymentSubsetFailure)
	held := int32(0)
	for _, one := range s.SubsetStatuses {
		held += one.Partition
	}
	p.Wanted = max(p.Wanted-held, 0)
	switch {
	case !p.Seen:
		p.Message = "the controller has not seen the present spec yet"
	case updated.status == corev1.ConditionTrue:
		p.Phase, p.Message = Done, "all Pods of all subsets are updated and ready"
	case failure.status == corev1.ConditionTrue:
		p.Message, p.Failure, p.Since = failure.message, failure.message, at(failure.since) // it is tried again
	case subsets.reason == wavePaused:
		p.Phase, p.Reason, p.Message = Waiting, NeedsApproval, subsets.message
		p.Next = fmt.Sprintf("annotate it with %s=%s/%s", keys.ContinuedWave, s.UpdatedRevision, s.Wave)
	case subsets.status == corev1.ConditionFalse && subsets.message != "":
		p.Message, p.waits, p.Since = subsets.message, codeOfSubsets(subsets.reason), at(subsets.since)
	case held > 0 && p.Updated >= p.Wanted && p.Ready >= p.Updated:
		p.held = true
		p.Phase, p.Message = Done, fmt.Sprintf("as far as the partitions let it: %d Pods stay at the old template", held)
		p.Next = "lower updateStrategy.manualUpdate.partitions"
	default:
		p.Message = fmt.Sprintf("%d of %d updated Pods are ready", p.Ready, p.Wanted)
	}
	return p
}

func sidecarSet(o *v1beta1.SidecarSet) Progress {
	s := o.Status
	p := Progress{
		Phase: Updating, Updated: s.UpdatedPods, Wanted: s.MatchedPods, Total: s.MatchedPods, Ready: s.UpdatedReadyPods,
		Available: s.ReadyPods, Seen: seen(s.ObservedGeneration, o.ObjectMeta),
	}
	c := meta.FindStatusCondition(s.Conditions, v1beta1.SidecarSetConditionProgressing)
	if !p.Seen || c == nil {
		p.Message = "the controller has not seen the present spec yet"
		if p.Seen {
			countSidecars(&p, o)
		}
		return p
	}
	p.Message, p.Since = c.Message, at(c.LastTransitionTime)
	judgeSidecars(&p, c)
	return p
}

// judgeSidecars goes by the condition Progressing.
func judgeSidecars(p *Progress, c *metav1.Condition) {
	switch c.Reason {
	case v1beta1.SidecarSetUpdated:
		p.Phase = Done
	case v1beta1.SidecarSetNotUpdate:
		p.Phase, p.Wanted = Done, p.Updated
	case v1beta1.SidecarSetPartitionReached:
		p.held = true
		p.Phase, p.Wanted, p.Next = Done, p.Updated, "lower updateStrategy.partition, or widen its selector"
	case v1beta1.SidecarSetPaused:
		p.Phase, p.Reason, p.Message, p.Next = Waiting, Paused, "paused: "+c.Message, "resume it"
	case v1beta1.SidecarSetImmutableFieldChanged:
		p.Phase, p.Reason, p.Next = Waiting, NeedsRecreation, "recreate these Pods, for example by a restart of their workloads"
	case v1beta1.SidecarSetInvalid:
		p.Phase, p.Reason = Failed, InvalidSpec
	}
}

// countSidecars goes by numbers alone, where the controller writes no condition: that of OpenKruise.
func countSidecars(p *Progress, o *v1beta1.SidecarSet) {
	p.Message = fmt.Sprintf("%d of %d Pods are updated, %d of these ready", p.Updated, p.Total, p.Ready)
	switch {
	case p.Updated >= p.Total && p.Ready >= p.Total:
		p.Phase, p.Message = Done, "all Pods are updated"
	case o.Spec.UpdateStrategy.Paused && p.Updated < p.Total:
		p.Phase, p.Reason, p.Message, p.Next = Waiting, Paused, "paused: "+p.Message, "resume it"
	}
}
