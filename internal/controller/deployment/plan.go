package deployment

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Event reasons, those of the native controller. Wire: users' alerts and tools match them.
const (
	eventScaling      = "ScalingReplicaSet"
	eventCreateFailed = "ReplicaSetCreateError"
	eventNotPaused    = "DeploymentNotPaused"
	eventOrphaned     = "OrphanedRelease"
)

// Plan decides the next step from the state alone.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	d := v.Deployment
	switch {
	case d.DeletionTimestamp != nil:
	case v.Orphaned:
		v.letGo(b)
		v.giveUp(b)
	case !v.released:
		v.letGo(b)
		v.clean(b)
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		v.letGo(b)
		v.restoreStrategy(b)
	case !d.Spec.Paused:
		v.letGo(b)
		b.Hold(plan.Hold{
			Code:  reason.Conflict,
			Why:   "spec.paused is false: Kubernetes rolls the Deployment out, and no batches are kept to",
			Event: eventNotPaused,
		})
	case v.problem != nil:
		v.letGo(b)
		held := b.Plan()
		held.Problem = v.problem
		return held
	case v.strategy.Paused:
		v.letGo(b)
		b.Hold(plan.Hold{Code: reason.HeldByPause, Why: "the annotation says paused"})
	case steer.IsTrafficFirst(d):
		v.letGo(b)
		b.Hold(plan.Hold{Code: reason.HeldByRollout, Why: "the old template is back, and no Pods are moved until traffic is led back"})
	case v.isOfAnother():
		v.letGo(b)
		b.Hold(plan.Hold{Code: reason.HeldByRollout,
			Why: "the template has changed, and the annotation does not say yet how many of its Pods may be made"})
	case v.fresh == nil && v.limits.Updated == 0 && !isClaimed(d): // the release has not come to its first step
		v.letGo(b)
	case v.fresh == nil:
		v.create(b)
	default:
		v.move(b)
	}
	return b.Plan()
}

func (v *State) summary() string {
	out := fmt.Sprintf("Deployment %s/%s   replicas %d", v.Deployment.Namespace, v.Deployment.Name, v.limits.Replicas)
	if v.released {
		out += fmt.Sprintf(", to be updated %d, surge %d, unavailable %d", v.limits.Updated, v.limits.Surge, v.limits.Unavailable)
	}
	for _, rs := range v.all() {
		out += fmt.Sprintf(", %s %d", rs.Name, sizeOf(rs))
		if isHeld(rs) {
			out += " held"
		}
	}
	return out
}

// letGo removes what holds ReplicaSets.
func (v *State) letGo(b *plan.Builder) {
	for _, rs := range v.all() {
		if isHeld(rs) {
			b.Do(release(rs))
		}
	}
}

func release(rs *appsv1.ReplicaSet) plan.Action {
	after := rs.DeepCopy()
	delete(after.Annotations, keys.HeldReplicas)
	return plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: rs, After: after, What: "let it go", Why: "no Pods are moved",
		While: keys.HeldReplicas, // its status is being written all the time
	}
}

// clean takes annotations of a release off ReplicaSets, once the Deployment has them no more: the native controller copies them there and
// never removes them, and kubectl rollout undo would bring them back. The last of them go with the mark, so that one write does.
func (v *State) clean(b *plan.Builder) {
	for _, rs := range v.all() {
		if steer.IsReleased(v.Deployment) {
			break
		}
		after := rs.DeepCopy()
		maps.DeleteFunc(after.Annotations, func(key, _ string) bool {
			_, kept := v.Deployment.Annotations[key]
			return !kept && key != keys.HeldReplicas && isOfRelease(key)
		})
		if len(after.Annotations) < len(rs.Annotations) && !isHeld(rs) {
			b.Do(plan.Action{
				Verb: plan.Update, Concern: plan.Tidy, Before: rs, After: after,
				What: "remove annotations of a release", Why: "the Deployment has them no more",
			})
		}
	}
	for _, c := range steer.Lowered(v.Deployment, v.Sets) {
		b.Do(releases.Action(c, "no release keeps its Pods any more"))
	}
}

func isOfRelease(key string) bool {
	return slices.Contains([]string{
		keys.DeploymentStrategy, keys.DeploymentExtraStatus, keys.OriginalDeploymentStrategy, keys.InProgressing, keys.ControlInfo,
	}, key)
}

// giveUp ends a release that nobody is left to end: Kubernetes rolls the Deployment out, with the strategy that its user wrote.
func (v *State) giveUp(b *plan.Builder) {
	kind, _ := steer.Of(ofDeployment(), steer.StyleOfDeployment(v.Deployment))
	w := steer.Unmark(kind, steer.Objects{Workload: v.Deployment, ReplicaSets: v.Sets, Autoscalers: v.Autoscalers})
	var chain plan.Chain
	for _, c := range w.First {
		chain = append(chain, releases.Action(c, "the Rollout is gone"))
	}
	b.Do(append(chain, plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: v.Deployment, After: steer.Unlabel(w.Workload),
		What: "end the release", Why: "its Rollout is gone",
		Event: eventOrphaned, EventMessage: "The Rollout of this Deployment is gone, so Kubernetes rolls it out without steps",
	})...)
}

// restoreStrategy ends what the original does to a Deployment, which would delete all Pods at once if somebody unpaused it.
func (v *State) restoreStrategy(b *plan.Builder) {
	after := v.Deployment.DeepCopy()
	after.Spec.Strategy = replicasets.Restored(v.strategy)
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: v.Deployment, After: after,
		What: "set strategy.type to RollingUpdate", Why: "with Recreate, all Pods would be deleted once it is unpaused",
	})
}

// isClaimed tells whether a BatchRelease drives a Deployment, also one whose first step updates no Pod: traffic is led by the label of the
// new ReplicaSet all the same.
func isClaimed(d *appsv1.Deployment) bool {
	_, claimed := steer.ClaimOf(d)
	return claimed
}

// create makes the new ReplicaSet, with the Pods of a first move that takes none from others. If its name is taken by another one, the
// native way out is to count the collision, which gives another name.
func (v *State) create(b *plan.Builder) {
	d := v.Deployment
	rs := replicasets.Make(d, v.Sets, v.limits)
	*rs.Spec.Replicas = v.firstSize()
	isNamed := func(other *appsv1.ReplicaSet) bool { return other.Name == rs.Name }
	if !slices.Contains(v.Taken, rs.Name) && !slices.ContainsFunc(v.Sets, isNamed) {
		a := plan.Action{
			Verb: plan.Create, Concern: plan.Rollout, After: rs, What: "make the new ReplicaSet", Why: "the template has changed",
			FailedEvent: eventCreateFailed, FailedPrefix: fmt.Sprintf("Failed to create new replica set %q: ", rs.Name),
		}
		if size := sizeOf(rs); size > 0 {
			a.Event, a.EventMessage = eventScaling, fmt.Sprintf("Scaled up replica set %s from 0 to %d", rs.Name, size)
		}
		b.Do(a)
		return
	}
	after := d.DeepCopy()
	count := int32(1)
	if d.Status.CollisionCount != nil {
		count += *d.Status.CollisionCount
	}
	after.Status.CollisionCount = &count
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Rollout, Before: d, After: after,
		What: "count a collision", Why: "the name " + rs.Name + " is taken",
	})
}

// firstSize returns how many Pods the new ReplicaSet is made with: none if others are to be written first.
func (v *State) firstSize() int32 {
	next := v.next()
	for i, rs := range v.old {
		if next.Hold || next.Old[i] != sizeOf(rs) || sizeOf(rs) == 0 && v.isBetween(rs) {
			return 0
		}
	}
	return next.New
}

// next returns the next move.
func (v *State) next() replicasets.Move {
	old := make([]replicasets.Set, len(v.old))
	for i, rs := range v.old {
		old[i] = setOf(rs)
	}
	return replicasets.Next(v.limits, setOf(v.fresh), old)
}

// move makes the next move.
func (v *State) move(b *plan.Builder) {
	next := v.next()
	if next.Wait != "" {
		b.Hold(plan.Hold{Code: reason.Held, Why: next.Wait})
	}
	b.Do(v.moving(next)...)
}
