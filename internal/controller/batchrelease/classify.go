package batchrelease

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Snapshot is all that one pass may look at.
type Snapshot struct {
	Release *v1beta1.BatchRelease
	Objects steer.Objects
	// Unusable says why workloads of the kind can't be read or written; empty if they can.
	Unusable string
	Options  Options
	Now      time.Time
}

// State is a Snapshot classified once, for the plan and the status.
type State struct {
	Snapshot
	kind  steer.Kind
	facts steer.Facts
	// problem says why the workload can't be steered; empty if it can.
	problem string
	// batch is the current one, counted from 0; targets are how many Pods each batch up to it updates.
	batch   int32
	targets []int32
	// counts says that a rollback in batches begins: the Pods that it keeps are counted before anything else.
	counts bool
	// writes are those to the workload and what belongs to it; promotes says that they let it go on by itself.
	writes   steer.Writes
	promotes bool
	// waits says what the batch waits for; empty when it is ready.
	waits string
}

// Classify says what the spec means for the workload that is there.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	p := s.Release.Spec.ReleasePlan
	of := releases.GroupKind(s.Release.Spec.WorkloadRef)
	var ok bool
	if v.kind, ok = releases.KindOf(s.Release.Spec.WorkloadRef, styleOf(p), s.Options.Foreign); !ok {
		v.problem = fmt.Sprintf("a %s can't be released in style %s", of, styleOf(p))
		return v
	}
	if v.problem = s.Unusable; v.problem != "" {
		return v
	}
	if s.Objects.Workload == nil {
		v.writes.Then = steer.Autoscaled(s.Objects)
		return v
	}
	v.facts, v.writes = v.kind.See(s.Objects), steer.Writes{Workload: s.Objects.Workload}
	switch {
	case p.BatchPartition == nil:
		v.finalize()
	case s.Release.DeletionTimestamp != nil:
	case len(p.Batches) == 0:
		v.problem = "releasePlan.batches are empty"
	default:
		if v.problem = cmp.Or(steer.Fits(s.Objects), steer.Lacks(s.Objects)); v.problem == "" {
			v.release(p)
		}
	}
	return v
}

// finalize lets the workload go on by itself.
func (v *State) finalize() {
	if !releases.LetsGo(v.Release, v.facts) {
		v.waits = "the Rollout decides about the template that the workload has now"
		return
	}
	if v.facts.Frozen || v.Release.Status.Phase != v1beta1.BatchReleasePhaseCompleted {
		v.writes, v.promotes = v.kind.Promote(v.Objects), true
	}
	switch {
	case v.changes():
		v.waits = "the workload is let go"
	case v.holds():
		v.waits = "Pods are updated in place before the workload goes on by itself"
	case v.Release.Spec.ReleasePlan.FinalizingPolicy == v1beta1.FinalizingPolicyWaitResume:
		v.waits = v.kind.Remains(v.Objects)
	}
	if v.waits != "" {
		return
	}
	if v.writes.Then = steer.Autoscaled(v.Objects); len(v.writes.Then) > 0 {
		v.waits = "its autoscalers scale it again"
		return
	}
	if v.isOurs() {
		v.writes.Workload = steer.Unclaim(v.writes.Workload)
	}
}

// release has the Pods of the batches updated up to the one that is let through.
func (v *State) release(p v1beta1.ReleasePlan) {
	st := v.Release.Status
	v.batch = min(*p.BatchPartition, int32(len(p.Batches))-1)
	kept := st.CanaryStatus.NoNeedUpdateReplicas
	back := v.Release.Annotations[keys.RollbackInBatch] == "true"
	switch {
	case !v.facts.Settled:
		v.waits = "the status of the workload is not up to date"
		return
	case st.UpdateRevision != "" && st.UpdateRevision != v.facts.Update:
		v.waits = fmt.Sprintf("the template has changed again, to revision %s", v.facts.Update)
		return
	case back && kept == nil && st.UpdateRevision == "":
		v.counts = true
		v.waits = "the Pods that need no update are counted"
		return
	}
	for i := range v.batch + 1 {
		n, err := v.kind.Planned(v.Objects, &p.Batches[i].CanaryReplicas)
		if err != nil {
			v.problem = fmt.Sprintf("releasePlan.batches[%d]: %v", i, err)
			return
		}
		if why := steer.Misdresses(v.Objects.Workload, p.Batches[i].PodMetadata); why != "" {
			v.problem = fmt.Sprintf("releasePlan.batches[%d].%s", i, why)
			return
		}
		v.targets = append(v.targets, n)
	}
	step := p.Batches[v.batch].CanaryReplicas
	writes, err := v.kind.Batch(v.Objects, steer.Batch{
		Step: &step, Paused: p.Paused, Kept: kept, Owner: referenceTo(v.Release), Metadata: p.PatchPodTemplateMetadata,
	})
	if err != nil {
		v.problem = err.Error()
		return
	}
	v.writes = writes
	v.writes.Workload = steer.Claim(v.writes.Workload, referenceTo(v.Release))
	v.waits = v.progress(p, kept)
}

// progress says what the batch waits for; empty when it is ready.
func (v *State) progress(p v1beta1.ReleasePlan, kept *int32) string {
	if v.facts.Replicas == 0 {
		return ""
	}
	planned := v.targets[v.batch]
	labelled := release.Progress{
		Updated: v.facts.Updated, Ready: v.facts.Ready,
		Labelled: steer.Labelled(v.kind, v.Objects, p.RolloutID), NeedLabels: p.RolloutID != "",
	}
	if kept != nil {
		step := p.Batches[v.batch].CanaryReplicas
		if n, err := release.RolledBack(&step, v.facts.Replicas, *kept); err == nil {
			labelled.NeedLabels = labelled.NeedLabels && labelled.Labelled < planned
			planned = n
		}
	}
	waits := release.BatchReady(labelled, planned, p.FailureThreshold)
	switch {
	case waits == "" && v.changes():
		return "the workload is being changed"
	case waits == "":
		return ""
	case p.Paused:
		return "paused: " + waits
	}
	return waits + v.broken()
}

// mostBroken is how many Pods a message names.
const mostBroken = 3

// broken names updated Pods that are not going to be ready by themselves, and why.
func (v *State) broken() string {
	var names []string
	isUpdated := v.kind.Updated(v.Objects)
	for _, p := range v.Objects.Pods {
		if !pod.IsActive(p) || !isUpdated(p) || len(names) == mostBroken {
			continue
		}
		if why := pod.Broken(p); why != "" {
			names = append(names, p.Name+": "+why)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + strings.Join(names, "; ")
}

// changes tells whether the workload, or what belongs to it, is to be changed.
func (v *State) changes() bool {
	return len(v.writes.First)+len(v.writes.Then) > 0 || v.writes.Workload != v.Objects.Workload
}

// holds tells whether the workload does not go on by itself yet although it is let go.
func (v *State) holds() bool { return v.promotes && v.staysFrozen() }

// staysFrozen tells whether the workload does not go on by itself after the writes.
func (v *State) staysFrozen() bool {
	after := v.Objects
	after.Workload = v.writes.Workload
	return v.kind.See(after).Frozen
}

// isSoleSign tells whether only the claim of a BatchRelease says that a release has frozen the workload. The mark is gone where somebody
// has replaced the object and no webhook has put it back, as with a Rollout that is being deleted: the claim is what the Rollout still
// finds such a workload by.
func (v *State) isSoleSign() bool {
	return metav1.GetControllerOfNoCopy(v.Release) != nil && !v.facts.Marked && v.staysFrozen()
}

// isOurs tells whether the workload says that this BatchRelease drives it.
func (v *State) isOurs() bool {
	by, claimed := steer.ClaimOf(v.Objects.Workload)
	return claimed && by.UID == v.Release.UID
}

func referenceTo(r *v1beta1.BatchRelease) metav1.OwnerReference {
	return *metav1.NewControllerRef(r, v1beta1.GroupVersion.WithKind("BatchRelease"))
}

func styleOf(p v1beta1.ReleasePlan) v1beta1.RollingStyle {
	if p.RollingStyle == "" && p.EnableExtraWorkloadForCanary {
		return v1beta1.RollingStyleCanary
	}
	return cmp.Or(p.RollingStyle, v1beta1.RollingStylePartition)
}

func hasFinalizer(r *v1beta1.BatchRelease) bool { return slices.Contains(r.Finalizers, Finalizer) }
