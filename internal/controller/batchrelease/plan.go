package batchrelease

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// eventUnsupported is the reason of the event of a workload that can't be steered.
//
// Wire: users' alerts match it.
const eventUnsupported = "UnsupportedWorkload"

// Plan decides the next step. It reads only the state and changes nothing.
func Plan(v State) plan.Plan {
	b := plan.For(fmt.Sprintf("BatchRelease %s/%s   batch %d", v.Release.Namespace, v.Release.Name, v.batch+1))
	if v.problem != "" {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.problem, Event: eventUnsupported, EventType: corev1.EventTypeWarning})
	}
	if v.Unusable != "" {
		b.Recheck(releases.UnusableRecheck, "the kind is installed, or the manager gets rights")
	}
	if v.Release.DeletionTimestamp != nil {
		v.giveBack(b)
		return b.Plan()
	}
	if !hasFinalizer(v.Release) {
		after := v.Release.DeepCopy()
		after.Finalizers = append(after.Finalizers, Finalizer)
		b.First(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: v.Release, After: after,
			What: "add the finalizer", Why: "the workload has to be given back",
		})
		return b.Plan()
	}
	if v.problem != "" {
		return b.Plan()
	}
	if v.Objects.Workload == nil {
		b.Do(releases.Chain(v.Objects, v.writes, "", "the workload is gone")...)
		return b.Plan()
	}
	b.Do(releases.Chain(v.Objects, v.writes, v.what(), v.why())...)
	b.Recheck(v.facts.After, "a Pod has been ready for minReadySeconds")
	v.label(b, v.labels(), "it is updated")
	return b.Plan()
}

// label writes labels and annotations of Pods, whatever their kubelets write meanwhile.
func (v *State) label(b *plan.Builder, changes []steer.Change, why string) {
	for _, c := range changes {
		a := releases.Action(c, why)
		a.AnyVersion = true
		b.Do(a)
	}
}

// labels returns the labels that Pods are to get.
func (v *State) labels() []steer.Change {
	p := v.Release.Spec.ReleasePlan
	switch {
	case p.BatchPartition == nil:
		return steer.Undressed(v.Objects)
	case p.RolloutID == "":
		return nil
	case v.counts:
		return steer.KeptLabels(v.kind, v.Objects, p.RolloutID)
	case len(v.targets) == 0:
		return nil
	}
	var metadata []*v1beta1.PodMetadata
	for _, batch := range p.Batches {
		metadata = append(metadata, batch.PodMetadata)
	}
	return steer.BatchLabels(v.kind, v.Objects, p.RolloutID, v.targets, metadata)
}

func (v *State) what() string {
	if v.Release.Spec.ReleasePlan.BatchPartition == nil {
		return "let the workload go on by itself"
	}
	return fmt.Sprintf("update Pods up to batch %d", v.batch+1)
}

func (v *State) why() string {
	switch {
	case v.Release.Spec.ReleasePlan.BatchPartition == nil:
		return "the release ends"
	case len(v.targets) == 0:
		return v.waits
	}
	return fmt.Sprintf("%d Pods are to be updated", v.targets[v.batch])
}

// giveBack takes the claim off the workload, lets it go on if the spec says so, and then the BatchRelease go. A claim that is the sole sign
// of the release stays: the Rollout takes it off as it lets the workload go, and the controller of Deployments does where there is none.
func (v *State) giveBack(b *plan.Builder) {
	if !hasFinalizer(v.Release) {
		return
	}
	if v.Objects.Workload == nil {
		b.Do(releases.Chain(v.Objects, v.writes, "", "the workload is gone")...)
	}
	if v.Objects.Workload != nil && v.kind != nil {
		w := v.writes
		if len(w.Then) == 0 && !v.staysFrozen() { // whoever has let it go: nothing tells of its autoscalers any more
			w.Then = steer.Autoscaled(v.Objects)
		}
		if v.isOurs() && !v.holds() && !v.isSoleSign() {
			w.Workload = steer.Unclaim(w.Workload)
		}
		b.Do(releases.Chain(v.Objects, w, "give the workload back", "the BatchRelease is being deleted")...)
		if v.holds() {
			return
		}
	}
	v.label(b, steer.Undressed(v.Objects), "the release is over")
	after := v.Release.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(name string) bool { return name == Finalizer })
	b.Last(plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: v.Release, After: after,
		What: "remove the finalizer", Why: "the workload is given back",
	})
}
