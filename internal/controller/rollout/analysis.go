package rollout

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/analysis"
	"github.com/seed-69ecc383/kruise/internal/rules/guard"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// eventRollback is the reason of the event of a rollback without a person; the others are those of condition Progressing.
//
// Wire: users' alerts and tools match it.
const eventRollback = "Rollback"

// Measurer makes the measurements of analyses that need the network.
type Measurer interface {
	// Want has exactly these measurements of a Rollout under way.
	Want(rollout types.NamespacedName, uid types.UID, wanted []analysis.Request)
	// Results returns those of them that have ended.
	Results(rollout types.UID) []analysis.Result
	// Forget gives up what is wanted of a Rollout that is gone.
	Forget(rollout types.UID)
	// Asked has the function called when one has ended.
	Asked(ask func(rollout types.NamespacedName))
}

// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// jobs returns the events of the Jobs of Rollouts, from the first Rollout on that has a check that is one.
func jobs() loop.Watch {
	watch := loop.Owned(&batchv1.Job{}, v1beta1.GroupVersion.WithKind("Rollout").GroupKind())
	watch.For = func(owner client.Object) bool {
		r, is := owner.(*v1beta1.Rollout)
		return is && hasJobs(r)
	}
	return watch
}

// tellsMore reports whether a change of a Pod concerns the guard.
func tellsMore(before, after *corev1.Pod) bool {
	if before == nil || after == nil {
		return true
	}
	was, told := guard.Facts(before)
	is, tells := guard.Facts(after)
	return was != is || told != tells
}

// hasJobs tells whether a check of a Rollout is a Job.
func hasJobs(r *v1beta1.Rollout) bool {
	steps := steer.StepsOf(&r.Spec.Strategy)
	return steps != nil && slices.ContainsFunc(steps.Steps, func(s v1beta1.Step) bool {
		return s.Analysis != nil && slices.ContainsFunc(s.Analysis.Checks, func(c v1beta1.Check) bool { return c.Job != nil })
	})
}

// readAnalysis reads what was measured, and while an old template is to be put back the revisions that hold it.
func (o Options) readAnalysis(ctx context.Context, r loop.Reads, s *Snapshot) error {
	rollout := s.Rollout
	if o.Measurer != nil {
		s.Measured = o.Measurer.Results(rollout.UID)
	}
	if hasJobs(rollout) {
		all := observe.Reader{Reader: r.Reader.Reader} // without an index, which would have a cache of Jobs where none is needed
		found, err := all.Controlled(ctx, &batchv1.JobList{}, rollout.Namespace, rollout.UID)
		if err != nil {
			return err
		}
		for _, job := range found {
			s.Jobs = append(s.Jobs, job.(*batchv1.Job))
		}
	}
	if rollout.Status.Rejected == nil || reasonOf(&rollout.Status) != v1beta1.ReasonCancelling || s.Objects.Workload == nil ||
		len(s.Objects.Revisions) > 0 {
		return nil
	}
	found, err := r.Controlled(ctx, &appsv1.ControllerRevisionList{}, rollout.Namespace, s.Objects.Workload.GetUID())
	for _, revision := range found {
		s.Objects.Revisions = append(s.Objects.Revisions, revision.(*appsv1.ControllerRevision))
	}
	return err
}

// decide decides what is next. A Job that has ended is a result, and which Jobs count follows from what was decided without it.
func (v *State) decide(seen release.Seen) {
	p := v.planOf()
	p.KeepsFrozen, p.Records, seen.Recorded = v.Options.KeepsFrozen, v.Options.Histories, v.isRecorded()
	seen.Measured = slices.Clone(v.Measured)
	v.pods(&seen)
	v.decision = release.Next(p, v.Rollout.Status, seen)
	for ended := v.ended(); len(ended) > 0; ended = v.ended() {
		seen.Measured = append(seen.Measured, ended...)
		v.decision = release.Next(p, v.Rollout.Status, seen)
	}
}

// pods tells old Pods from updated ones.
func (v *State) pods(seen *release.Seen) {
	if v.kind == nil || v.Objects.Workload == nil {
		return
	}
	isUpdated := v.kind.Updated(v.Objects)
	for _, p := range v.Objects.Pods {
		facts, tells := guard.Facts(p)
		switch {
		case !tells:
		case isUpdated(p):
			seen.NewPods = append(seen.NewPods, facts)
		case v.facts.StableHash == "" || p.Labels[v.facts.RevisionLabel] == v.facts.StableHash:
			seen.OldPods = append(seen.OldPods, facts)
		}
	}
}

// ended returns the results of the Jobs that are asked for and have ended.
func (v *State) ended() (out []analysis.Result) {
	for _, r := range v.decision.Measure {
		job := v.jobOf(r)
		if job == nil {
			continue
		}
		if outcome, ended := analysis.JobOutcome(job); ended {
			out = append(out, analysis.Of(r.Key(), job.CreationTimestamp, outcome))
		}
	}
	return out
}

// jobOf returns the Job of a measurement; nil if there is none.
func (v *State) jobOf(r analysis.Request) *batchv1.Job {
	if r.Check.Job == nil {
		return nil
	}
	name := analysis.Job(v.Rollout, r).Name
	if i := slices.IndexFunc(v.Jobs, func(job *batchv1.Job) bool { return job.Name == name }); i >= 0 {
		return v.Jobs[i]
	}
	return nil
}

// createJobs creates the Jobs of measurements that are to be under way.
func (v *State) createJobs(b *plan.Builder) {
	for _, r := range v.decision.Measure {
		if r.Check.Job == nil || v.jobOf(r) != nil {
			continue
		}
		b.Do(plan.Action{
			Verb: plan.Create, Concern: plan.Rollout, After: analysis.Job(v.Rollout, r),
			What: "measure check " + r.Check.Name, Why: v.why(),
			FailedEvent: "FailedCreate", FailedPrefix: fmt.Sprintf("Creating the Job of check %s: ", r.Check.Name),
		})
	}
}

// requests returns the measurements that need the network.
func (v *State) requests() (out []analysis.Request) {
	for _, r := range v.decision.Measure {
		if r.Check.Job == nil {
			out = append(out, r)
		}
	}
	return out
}

// putBack gives the workload its old template.
func (v *State) putBack(b *plan.Builder) plan.Chain {
	at := commonOf(&v.decision.Status)
	if at == nil || v.Objects.Workload == nil {
		return nil
	}
	w, err := steer.PutBack(v.Objects, at.StableRevision)
	if err != nil {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: "putting the old template back: " + err.Error(), Event: eventRollback,
			Failure: plan.Rollout})
		return nil
	}
	return v.write(w, "put the old template back", v.why())
}

// verdicts tells of what has just been found out about the new version.
func (v *State) verdicts(b *plan.Builder) {
	was, is := v.Rollout.Status, v.decision.Status
	before, after := reasonOf(&was), reasonOf(&is)
	if before == after {
		return
	}
	warn := func(event string) {
		b.Hold(plan.Hold{Code: reason.Stopped, Why: find(&is, v1beta1.ConditionProgressing).Message, Event: event,
			EventType: corev1.EventTypeWarning})
	}
	switch {
	case after == v1beta1.ReasonAnalysisFailed, after == v1beta1.ReasonGuardFailed, after == v1beta1.ReasonRejected,
		after == v1beta1.ReasonThirdVersion:
		warn(after)
	case after == v1beta1.ReasonCancelling && isGoingBack(&was, &is):
		warn(eventRollback)
	}
}

// isGoingBack tells whether a rollback without a person has just been decided.
func isGoingBack(was, is *v1beta1.RolloutStatus) bool {
	return is.Rejected != nil && (was.Rejected == nil || !was.Rejected.Time.Equal(&is.Rejected.Time))
}
