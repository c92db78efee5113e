package batchrelease

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Status says how far the batches are that were read. What was just asked for shows in the next pass.
func Status(v State, _ plan.Plan, _ apply.Outcome) v1beta1.BatchReleaseStatus {
	s := *v.Release.Status.DeepCopy()
	if v.Release.DeletionTimestamp != nil || !hasFinalizer(v.Release) {
		return s // the finalizer has just been written
	}
	p := v.Release.Spec.ReleasePlan
	s.ObservedGeneration, s.ObservedRolloutID, s.ObservedReleasePlanHash = v.Release.Generation, p.RolloutID, hashOf(p)
	if s.Message = v.waits; v.problem != "" {
		s.Message = v.problem
	}
	if v.problem != "" {
		return s
	}
	if v.Objects.Workload == nil {
		s.Message = fmt.Sprintf("%s %s is not there", v.Release.Spec.WorkloadRef.Kind, v.Release.Spec.WorkloadRef.Name)
		if s.Phase = v1beta1.BatchReleasePhasePreparing; p.BatchPartition == nil {
			s.Phase = v1beta1.BatchReleasePhaseCompleted
		}
		return s
	}
	s.CanaryStatus.UpdatedReplicas, s.CanaryStatus.UpdatedReadyReplicas = v.facts.Updated, v.facts.Ready
	s.ObservedWorkloadReplicas = v.facts.Replicas
	if p.BatchPartition == nil {
		if s.Phase = v1beta1.BatchReleasePhaseFinalizing; v.waits == "" {
			s.Phase = v1beta1.BatchReleasePhaseCompleted
		}
		return s
	}
	v.batchStatus(&s)
	return s
}

// batchStatus fills in the state of the current batch.
func (v *State) batchStatus(s *v1beta1.BatchReleaseStatus) {
	c := &s.CanaryStatus
	if v.isReadyStill() {
		return
	}
	c.CurrentBatch = v.batch
	if v.counts {
		s.Phase, c.CurrentBatchState = v1beta1.BatchReleasePhasePreparing, v1beta1.BatchStateUpgrading
		c.NoNeedUpdateReplicas = &v.facts.Updated
		return
	}
	if s.Phase = v1beta1.BatchReleasePhaseProgressing; len(v.targets) == 0 && s.UpdateRevision == "" {
		s.Phase = v1beta1.BatchReleasePhasePreparing
	}
	if len(v.targets) > 0 && s.UpdateRevision == "" {
		s.StableRevision, s.UpdateRevision = v.facts.Stable, v.facts.Update
	}
	switch was := c.CurrentBatchState; {
	case v.waits == "":
		c.CurrentBatchState = v1beta1.BatchStateReady
		if was != v1beta1.BatchStateReady || c.BatchReadyTime == nil {
			now := metav1.NewTime(v.Now)
			c.BatchReadyTime = &now
		}
		return
	case len(v.targets) > 0 && v.facts.Updated >= v.targets[v.batch]:
		c.CurrentBatchState = v1beta1.BatchStateVerifying
	default:
		c.CurrentBatchState = v1beta1.BatchStateUpgrading
	}
	c.BatchReadyTime = nil
}

// isReadyStill tells whether a batch that was ready stays so while the status of the workload is not up to date: others write to the
// workload, too, and an approval of what is there must not be lost because of it.
func (v *State) isReadyStill() bool {
	was := v.Release.Status
	return !v.facts.Settled && was.CanaryStatus.CurrentBatchState == v1beta1.BatchStateReady && was.CanaryStatus.CurrentBatch == v.batch &&
		was.ObservedReleasePlanHash == hashOf(v.Release.Spec.ReleasePlan) && was.ObservedWorkloadReplicas == v.facts.Replicas
}

// isMinor reports whether two statuses differ only in what people read while a batch is under way.
func isMinor(stored, next *v1beta1.BatchReleaseStatus) bool {
	a, b := stored.DeepCopy(), next.DeepCopy()
	for _, s := range []*v1beta1.BatchReleaseStatus{a, b} {
		s.Message, s.ObservedWorkloadReplicas = "", 0
		s.CanaryStatus.UpdatedReplicas, s.CanaryStatus.UpdatedReadyReplicas = 0, 0
		if s.CanaryStatus.CurrentBatchState == v1beta1.BatchStateVerifying {
			s.CanaryStatus.CurrentBatchState = v1beta1.BatchStateUpgrading
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// begins reports whether a status says no more than that the next batch, or the end of the release, has begun. Whoever waits for a batch
// goes by the observed generation, too: a batch that is ready counts only for the spec that it was ready for.
func begins(stored, next *v1beta1.BatchReleaseStatus) bool {
	wasReady := stored.Phase == v1beta1.BatchReleasePhaseProgressing && stored.CanaryStatus.CurrentBatchState == v1beta1.BatchStateReady
	isNoted := stored.UpdateRevision != "" && stored.UpdateRevision == next.UpdateRevision
	isBusy := next.Phase == v1beta1.BatchReleasePhaseFinalizing ||
		next.Phase == v1beta1.BatchReleasePhaseProgressing && next.CanaryStatus.CurrentBatchState != v1beta1.BatchStateReady
	return stored.ObservedGeneration != next.ObservedGeneration && wasReady && isNoted && isBusy
}

// hashOf returns what tells plans apart, whatever of them is let through.
func hashOf(p v1beta1.ReleasePlan) string {
	p.BatchPartition, p.FinalizingPolicy, p.Paused = nil, "", false
	text, _ := json.Marshal(p) // of the API, which can be written
	h := fnv.New64a()
	_, _ = h.Write(text) // a hash takes everything
	return strconv.FormatUint(h.Sum64(), 36)
}
