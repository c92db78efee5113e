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
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Plan returns the writes of the actions that were decided. It reads only the state and changes nothing.
func Plan(v State) plan.Plan {
	r := v.Rollout
	b := plan.For(fmt.Sprintf("Rollout %s/%s   %s", r.Namespace, r.Name, v.decision.Status.Message))
	if !hasFinalizer(r) {
		if r.DeletionTimestamp == nil {
			v.finalizer(b, append(slices.Clone(r.Finalizers), Finalizer), "add the finalizer")
		}
		return b.Plan()
	}
	if v.isStuck() {
		v.wait(b)
		return b.Plan()
	}
	if v.Unusable != "" && v.Objects.Workload == nil {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.Unusable + ": the workload is left as it is", Event: eventUnsupported,
			EventType: corev1.EventTypeWarning})
	}
	v.events(b)
	v.verdicts(b)
	for _, a := range v.decision.Do {
		if a.Do == release.PutBack {
			b.Do(v.putBack(b)...)
			continue
		}
		b.Do(v.chain(a)...)
	}
	v.createJobs(b)
	b.Recheck(v.decision.After, "time goes by")
	if len(v.decision.Do) == 0 && v.Objects.Workload != nil && r.DeletionTimestamp == nil && !r.Spec.Disabled {
		v.prepare(b)
	}
	// The status comes first, and nothing is written to the owner along with it.
	if v.decision.Done && equality.Semantic.DeepEqual(r.Status, Status(v, plan.Plan{}, apply.Outcome{})) {
		if v.Objects.Workload != nil && releases.IsKnown(r.Spec.WorkloadRef) { // else its user has given it
			unlabelled := steer.Writes{Workload: steer.Unlabel(v.Objects.Workload)}
			b.Do(v.write(unlabelled, "take the label off the workload", "the Rollout goes")...)
		}
		others := slices.DeleteFunc(slices.Clone(r.Finalizers), func(name string) bool { return name == Finalizer })
		v.finalizer(b, others, "remove the finalizer")
	}
	return b.Plan()
}

// wait tells what has to come before anything can be decided.
func (v *State) wait(b *plan.Builder) {
	if v.problem != "" {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.problem, Event: eventUnsupported, EventType: corev1.EventTypeWarning})
	}
	switch {
	case v.Unusable != "" && v.Objects.Workload != nil:
		b.Recheck(time.Second, "API servers go by the webhook configuration")
	case v.Unusable != "":
		b.Recheck(releases.UnusableRecheck, "the kind is installed, or the manager gets rights")
	case v.problem == "" && v.Objects.Workload != nil:
		v.prepare(b)
	}
}

// prepare has changes of the workload intercepted.
func (v *State) prepare(b *plan.Builder) {
	prepared := steer.Writes{Workload: steer.Prepare(v.kind, v.Objects.Workload)}
	b.Do(v.write(prepared, "prepare the workload", "its changes are to be intercepted")...)
}

func (v *State) finalizer(b *plan.Builder, finalizers []string, what string) {
	after := v.Rollout.DeepCopy()
	after.Finalizers = finalizers
	b.Last(plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: v.Rollout, After: after, What: what, Why: "a release must be ended"})
}

// chain returns the writes of one action.
func (v *State) chain(a release.Action) plan.Chain {
	switch a.Do {
	case release.Upgrade:
		return v.upgrade(a.Step)
	case release.Hold:
		return v.edit(func(b *v1beta1.BatchRelease) { b.Spec.ReleasePlan.Paused = true }, "pause the batch")
	case release.Resume:
		return v.resume(a.Wait)
	case release.Release:
		if v.Batch == nil || v.Batch.DeletionTimestamp != nil {
			return nil
		}
		return plan.Chain{{
			Verb: plan.Delete, Concern: plan.Rollout, Before: v.Batch, AnyVersion: true, What: "delete the BatchRelease", Why: v.why(),
		}}
	case release.Unmark:
		return v.write(steer.Unmark(v.kind, v.Objects), "take the marks of the release off the workload", v.why())
	case release.Abandon:
		return v.write(steer.Abandon(v.Objects), "take the marks of the release off the workload, which stays frozen", v.why())
	case release.Record:
		return v.record()
	}
	if v.Routes == nil {
		return nil
	}
	return v.Routes.Plan(a)
}

// upgrade lets the BatchRelease release up to a step. The old template is released in steps only by a rollback in batches.
func (v *State) upgrade(step int32) plan.Chain {
	want := v.releasePlan()
	want.BatchPartition = ptr.To(step - 1)
	if v.Batch != nil {
		if v.Batch.DeletionTimestamp != nil {
			return nil // another one comes when it is gone
		}
		return v.edit(func(b *v1beta1.BatchRelease) { b.Spec.ReleasePlan = want }, fmt.Sprintf("let step %d be released", step))
	}
	r := v.Rollout
	batch := &v1beta1.BatchRelease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name, OwnerReferences: []metav1.OwnerReference{referenceTo(r)},
			Finalizers: []string{releases.BatchFinalizer},
		},
		Spec: v1beta1.BatchReleaseSpec{WorkloadRef: r.Spec.WorkloadRef, ReleasePlan: want},
	}
	if at := commonOf(&v.decision.Status); v.facts.Update == at.StableRevision {
		batch.Annotations = map[string]string{keys.RollbackInBatch: "true"}
	}
	return plan.Chain{{
		Verb: plan.Create, Concern: plan.Rollout, After: batch, What: fmt.Sprintf("let step %d be released", step), Why: v.why(),
		FailedEvent: "FailedCreate", FailedPrefix: "Creating the BatchRelease: ",
	}}
}

// resume lets the workload go on by itself.
func (v *State) resume(wait bool) plan.Chain {
	if v.Batch != nil && v.Batch.DeletionTimestamp == nil {
		policy := v1beta1.FinalizingPolicyImmediate
		if wait {
			policy = v1beta1.FinalizingPolicyWaitResume
		}
		told := v.edit(func(b *v1beta1.BatchRelease) {
			p := &b.Spec.ReleasePlan
			p.BatchPartition, p.FinalizingPolicy, p.Paused = nil, policy, false
			if v.facts.Settled {
				metav1.SetMetaDataAnnotation(&b.ObjectMeta, keys.ResumedRevision, v.facts.Update)
			}
		}, "have the BatchRelease let the workload go")
		if told != nil || releases.LetsGo(v.Batch, v.facts) {
			return told
		}
	}
	return v.write(v.kind.Promote(v.Objects), "let the workload go on by itself", v.why())
}

// edit changes the BatchRelease.
func (v *State) edit(change func(*v1beta1.BatchRelease), what string) plan.Chain {
	if v.Batch == nil || v.Batch.DeletionTimestamp != nil {
		return nil
	}
	after := v.Batch.DeepCopy()
	change(after)
	if equality.Semantic.DeepEqual(after, v.Batch) {
		return nil
	}
	return plan.Chain{{Verb: plan.Update, Concern: plan.Rollout, Before: v.Batch, After: after, What: what, Why: v.why()}}
}

func (v *State) write(w steer.Writes, what, why string) plan.Chain {
	return releases.Chain(v.Objects, w, what, why)
}

func (v *State) why() string { return v.decision.Status.Message }
