package rollout

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/internal/traffic"
)

// State is a Snapshot classified once, for the plan and the status.
type State struct {
	Snapshot
	kind  steer.Kind
	facts steer.Facts
	steps *v1beta1.StepsStrategy
	// problem says why nothing can be decided; empty if it can.
	problem string
	// lacks says what the workload may get by itself before anything can be decided; empty if it has all.
	lacks    string
	decision release.Decision
}

// Classify decides what is next.
func Classify(s Snapshot) State {
	v := State{Snapshot: s, steps: steer.StepsOf(&s.Rollout.Spec.Strategy)}
	kind, ok := s.Options.kindOf(s.Rollout)
	switch {
	case v.steps == nil || len(v.steps.Steps) == 0:
		v.problem = "spec.strategy has no steps"
	case !ok:
		v.problem = fmt.Sprintf("a %s can't be released in style %s",
			releases.GroupKind(s.Rollout.Spec.WorkloadRef), steer.StyleOf(s.Rollout.Spec.Strategy))
	case s.Unusable != "":
		v.lacks = s.Unusable
	default:
		v.problem, v.lacks = steer.Fits(s.Objects), steer.Lacks(s.Objects)
	}
	v.kind = kind
	if v.isStuck() {
		return v
	}
	seen := release.Seen{Now: s.Now}
	if ok && s.Objects.Workload != nil {
		v.facts = kind.See(s.Objects)
		v.facts.NoneOld = noneOld(s.Objects.Pods, v.facts, commonOf(&s.Rollout.Status))
		v.facts.Left = v.facts.Frozen && !v.facts.Marked && s.isClaimGone()
		seen.Workload = &v.facts.Workload
	}
	seen.Batch = v.batch()
	if s.Routes != nil {
		seen.Traffic = s.Routes.Seen()
	}
	v.decide(seen)
	return v
}

// isStuck tells whether nothing can be decided. A Rollout that is being deleted, or is disabled, gives back what is there.
func (v *State) isStuck() bool {
	return (v.problem != "" || v.lacks != "") && v.Rollout.DeletionTimestamp == nil
}

// isClaimGone tells whether the workload says that a BatchRelease of a Rollout of this name drives it, and that one is not there any more.
func (s *Snapshot) isClaimGone() bool {
	by, claimed := steer.ClaimOf(s.Objects.Workload)
	return claimed && by.Name == s.Rollout.Name && (s.Batch == nil || s.Batch.UID != by.UID)
}

// noneOld tells whether a workload has all its Pods, and none of them is selected by a Service that selects old ones alone. Once all of its
// Pods are updated, a workload takes the new revision for its stable one: then the one that the release came from counts.
func noneOld(pods []*corev1.Pod, f steer.Facts, at *v1beta1.CommonStatus) bool {
	hash := f.StableHash
	if at != nil && at.StableRevision != "" && f.Stable == f.Update && at.StableRevision != f.Update {
		hash = revision.ShortHash(at.StableRevision)
	}
	active := int32(0)
	for _, p := range pods {
		if !pod.IsActive(p) {
			continue
		}
		if revision.IsOf(p.Labels[f.RevisionLabel], hash) {
			return false
		}
		active++
	}
	return hash != "" && active > 0 && active >= f.Replicas
}

// planOf returns what the Rollout wants.
func (v *State) planOf() release.Plan {
	r := v.Rollout
	p := release.Plan{
		Style: steer.StyleOf(r.Spec.Strategy), Paused: r.Spec.Strategy.Paused, Disabled: r.Spec.Disabled,
		Deleted:    r.DeletionTimestamp != nil,
		OnDeadline: r.Spec.Strategy.OnProgressDeadline, Guard: r.Spec.Strategy.Guard,
		Deadline: time.Duration(ptr.Deref(r.Spec.Strategy.ProgressDeadlineSeconds, 0)) * time.Second,
		Shared:   v.Routes != nil && rules.SharedName(r) != "",
	}
	if v.steps == nil {
		return p
	}
	p.Steps, p.Hash = v.steps.Steps, release.Hash(v.steps.Steps)
	routings := traffic.Of(r)
	p.Routed = v.Routes != nil && len(routings.Refs) > 0
	p.OneService, p.Grace = routings.OneService(), time.Duration(traffic.Grace(routings.Refs))*time.Second
	p.RollbackInBatches = r.Annotations[keys.RollbackInBatch] == "true" && !p.Routed && p.Style == v1beta1.RollingStylePartition
	return p
}

// batch returns what is seen of the BatchRelease.
func (v *State) batch() release.Batch {
	b := v.Batch
	if b == nil {
		return release.Batch{}
	}
	out := release.Batch{Exists: true, Paused: b.Spec.ReleasePlan.Paused, Message: b.Status.Message}
	out.Another = b.DeletionTimestamp == nil && releases.IsOfAnother(b, v.facts)
	current := b.Status.ObservedGeneration == b.Generation && b.DeletionTimestamp == nil
	out.Resumed = current && b.Status.Phase == v1beta1.BatchReleasePhaseCompleted
	partition := b.Spec.ReleasePlan.BatchPartition
	if partition == nil || b.DeletionTimestamp != nil || v.steps == nil || !v.isPlanned(b) {
		return out
	}
	out.Allowed = *partition + 1
	if current && b.Status.CanaryStatus.CurrentBatchState == v1beta1.BatchStateReady {
		out.Step = b.Status.CanaryStatus.CurrentBatch + 1
	}
	return out
}

// isPlanned tells whether a BatchRelease has the steps that the Rollout has now.
func (v *State) isPlanned(b *v1beta1.BatchRelease) bool {
	want, is := v.releasePlan(), b.Spec.ReleasePlan
	is.BatchPartition, is.FinalizingPolicy, is.Paused = nil, "", false
	return equality.Semantic.DeepEqual(want, is)
}

// releasePlan returns the plan of the BatchRelease that the Rollout wants, without what it lets through.
func (v *State) releasePlan() v1beta1.ReleasePlan {
	style := steer.StyleOf(v.Rollout.Spec.Strategy)
	p := v1beta1.ReleasePlan{
		RollingStyle: style, EnableExtraWorkloadForCanary: style == v1beta1.RollingStyleCanary,
		FailureThreshold: v.steps.FailureThreshold, RolloutID: v.releaseID(),
	}
	if canary := v.Rollout.Spec.Strategy.Canary; canary != nil {
		p.PatchPodTemplateMetadata = canary.PatchPodTemplateMetadata
	}
	for _, step := range v.steps.Steps {
		p.Batches = append(p.Batches, v1beta1.ReleaseBatch{CanaryReplicas: *step.Replicas, PodMetadata: step.PodMetadata})
	}
	return p
}

// releaseID returns the name of the release that is under way.
func (v *State) releaseID() string {
	if at := commonOf(&v.Rollout.Status); at != nil {
		return at.ObservedRolloutID
	}
	return ""
}

// commonOf returns what a status says of the release in any style; nil if it says nothing.
func commonOf(st *v1beta1.RolloutStatus) *v1beta1.CommonStatus {
	switch {
	case st.CanaryStatus != nil:
		return &st.CanaryStatus.CommonStatus
	case st.BlueGreenStatus != nil:
		return &st.BlueGreenStatus.CommonStatus
	}
	return nil
}

func referenceTo(r *v1beta1.Rollout) metav1.OwnerReference {
	return *metav1.NewControllerRef(r, v1beta1.GroupVersion.WithKind("Rollout"))
}

func hasFinalizer(r *v1beta1.Rollout) bool { return slices.Contains(r.Finalizers, Finalizer) }
