package steer

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// blueGreen steers workloads whose new Pods come up beside all old ones. The workload's own controller makes them: a surge of as many Pods
// as the step says, with no old Pod that may be missing, and a time to become available that never passes, so that none is ever replaced.
// In the end what was changed of the strategy is restored, in one write, and old Pods go.
//
// An annotation says what is to be restored, and what the release has set. It comes with the change that begins the release, and goes with
// what ends it: a write that changes the strategy and leaves the annotation is not ours.
type blueGreen struct {
	// Kind is how workloads of this kind are released in batches: how their revisions and Pods are told apart is the same.
	Kind
	read  func(workload Object) besideStrategy
	write func(workload Object, s besideStrategy)
	// keepType gives a workload, which is changed, the type of strategy that it had before if the new one has no surge.
	keepType func(was, is Object)
}

// blueGreenDeployments steers Deployments.
func blueGreenDeployments() Kind {
	return blueGreen{
		Kind: deployments{}, read: readDeployment, write: writeDeployment,
		keepType: func(was, is Object) {
			old, now := &was.(*appsv1.Deployment).Spec.Strategy, &is.(*appsv1.Deployment).Spec.Strategy
			if now.Type == appsv1.RecreateDeploymentStrategyType && old.Type != now.Type {
				*now = *old.DeepCopy()
			}
		},
	}
}

// blueGreenCloneSets steers CloneSets.
func blueGreenCloneSets() Kind {
	return blueGreen{
		Kind: cloneSet(), read: readCloneSet, write: writeCloneSet,
		keepType: func(was, is Object) {
			old, now := &was.(*v1beta1.CloneSet).Spec.UpdateStrategy, &is.(*v1beta1.CloneSet).Spec.UpdateStrategy
			if now.Type == v1beta1.OnDeleteCloneSetStrategyType && old.Type != now.Type {
				now.Type = old.Type
			}
		},
	}
}

// isBlueGreen tells whether a release of blueGreen style has a workload in hand, or has left it as it was.
func isBlueGreen(workload Object) bool {
	_, noted := workload.GetAnnotations()[keys.OriginalDeploymentStrategy]
	return noted
}

// Refuses says why a change is not a release in steps.
func (k blueGreen) Refuses(o Objects) string {
	if set, is := o.Workload.(*v1beta1.CloneSet); is {
		r := set.Spec.UpdateStrategy.RollingUpdate
		if r != nil && r.PodUpdatePolicy == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType {
			return "its podUpdatePolicy is InPlaceOnly, which makes no Pods beside the old ones"
		}
	}
	return k.Kind.Refuses(o)
}

// Freeze has no Pod of the new template made, and notes what is to be restored. Where a release has brought up Pods already, they stay.
func (k blueGreen) Freeze(o Objects) Object {
	next := copyOf(o.Workload)
	is := k.read(next)
	n, noted, err := noteOf(next, is)
	if !noted {
		n = is.original()
	}
	if err == nil {
		n.Paused = true
		note(next, n)
	}
	is.stands = true
	k.write(next, is)
	if d, is := next.(*appsv1.Deployment); is {
		if stable := (deployments{}).stable(o); stable != nil {
			d.Labels = with(d.Labels, keys.StableRevision, stable.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		}
	}
	return next
}

// Guard keeps the strategy of the release, and notes what somebody writes instead as what they want when it is over: whoever writes the
// manifest back takes no Pod away, and finds in the end what the manifest says.
func (k blueGreen) Guard(old Object, o Objects) Object {
	was, noted, err := noteOf(old, k.read(old))
	if !noted || err != nil {
		return o.Workload
	}
	next := copyOf(o.Workload)
	k.keepType(old, next)
	now := k.read(next)
	n, kept, err := noteOf(next, now)
	if isReplaced := next.GetLabels()[keys.WorkloadType] == ""; !kept && !isReplaced && now.minReadySeconds != budget.BesideSeconds {
		return o.Workload // what ends a release takes the annotation away
	}
	if !kept || err != nil {
		n = was
	}
	held, n := now.held(n)
	k.write(next, held)
	note(next, n)
	if same(next, o.Workload) {
		return o.Workload
	}
	return next
}

// See returns what is known of the workload. Its Pods count as ready when they are available by the time that its user wrote.
func (k blueGreen) See(o Objects) Facts {
	f := k.Kind.See(o)
	f.Frozen = f.Frozen || IsReleased(o.Workload) && isBlueGreen(o.Workload)
	f.Unscaled = len(Autoscaled(o)) > 0
	is := k.read(o.Workload)
	seconds := is.minReadySeconds
	if n, noted, err := noteOf(o.Workload, is); noted && err == nil && n.Surge != nil {
		seconds = is.restored(n).minReadySeconds
	}
	isUpdated := k.Updated(o)
	f.Ready, f.After = available(o, isUpdated, seconds), untilAvailable(o, isUpdated, seconds)
	return f
}

// Planned returns how many new Pods a step has beside the old ones.
func (k blueGreen) Planned(o Objects, step *intstr.IntOrString) (int32, error) {
	return release.Planned(step, k.replicas(o))
}

func (k blueGreen) replicas(o Objects) int32 {
	switch workload := o.Workload.(type) {
	case *appsv1.Deployment:
		return replicasOf(workload.Spec.Replicas)
	case *v1beta1.CloneSet:
		return replicasOf(workload.Spec.Replicas)
	}
	return 0
}

// Batch lets as many new Pods come up as the step says, and none go. Autoscalers are turned away first, and the ReplicaSet of old Pods gets
// the time to become available that never passes: with the old template it would be the new one and complete, and Kubernetes would delete
// all others at once, before traffic is led back.
func (k blueGreen) Batch(o Objects, b Batch) (Writes, error) {
	is := k.read(o.Workload)
	n, noted, err := noteOf(o.Workload, is)
	switch {
	case err != nil:
		return Writes{}, fmt.Errorf("%w: what is to be restored can't be known; put back what it said", err)
	case !noted && is.minReadySeconds == budget.BesideSeconds:
		return Writes{}, fmt.Errorf("annotation %s is gone: what is to be restored can't be known; put it back, or set minReadySeconds",
			keys.OriginalDeploymentStrategy)
	case n.Surge == nil && b.Paused:
		return unchanged(o), nil
	case n.Surge == nil:
		n = is.original()
	}
	if why := is.misfit(n); why != "" {
		return Writes{}, fmt.Errorf("the strategy does not fit the release: %s", why)
	}
	if !b.Paused {
		if n.Surge, err = k.surge(o, n.Surge, b.Step); err != nil {
			return Writes{}, fmt.Errorf("steps: %w", err)
		}
		n.Paused = false
	}
	w := unchanged(o)
	next := copyOf(o.Workload)
	k.write(next, during(n))
	note(next, n)
	if !same(next, o.Workload) {
		w.Workload = next
	}
	w.First = append(turnedAway(o), raised(o)...)
	return w, nil
}

// surge returns the step, unless there are more new Pods already.
func (k blueGreen) surge(o Objects, was, step *intstr.IntOrString) (*intstr.IntOrString, error) {
	planned, err := k.Planned(o, step)
	if err != nil || was == nil {
		return step, err
	}
	if before, err := k.Planned(o, was); err == nil && before > planned {
		return was, nil
	}
	return step, nil
}

// raised has the ReplicaSet of old Pods never be available.
func raised(o Objects) []Change {
	d, is := o.Workload.(*appsv1.Deployment)
	if !is {
		return nil
	}
	stable := (deployments{}).stable(o)
	if stable == nil || stable == replicasets.New(d, setsOf(o, d)) || stable.Spec.MinReadySeconds == budget.BesideSeconds {
		return nil
	}
	return []Change{waiting(stable, budget.BesideSeconds)}
}

func waiting(rs *appsv1.ReplicaSet, seconds int32) Change {
	after := rs.DeepCopy()
	after.Spec.MinReadySeconds = seconds
	return Change{Before: rs, After: after, What: fmt.Sprintf("set minReadySeconds to %d", seconds)}
}

// Lowered returns what gives the older ReplicaSets of a Deployment that no release of blueGreen style has in hand its own minReadySeconds
// again.
func Lowered(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) []Change {
	if isBlueGreen(d) || d.Spec.MinReadySeconds == budget.BesideSeconds {
		return nil
	}
	var out []Change
	fresh := replicasets.New(d, sets)
	for _, rs := range sets {
		if rs != fresh && rs.Spec.MinReadySeconds == budget.BesideSeconds { // Kubernetes looks after the new one
			out = append(out, waiting(rs, d.Spec.MinReadySeconds))
		}
	}
	return out
}

// Promote restores the strategy, in one write, so that the workload's own controller goes on with it. Where nobody knows any more what it
// was, because the annotation is gone, it becomes the usual one: nothing else would ever end it.
func (k blueGreen) Promote(o Objects) Writes {
	is := k.read(o.Workload)
	n, noted, err := noteOf(o.Workload, is)
	isLost := err != nil || !noted && is.minReadySeconds == budget.BesideSeconds
	if !noted && !isLost && !(IsReleased(o.Workload) && is.stands) {
		return Writes{Workload: o.Workload, Then: k.lowered(o, o.Workload)}
	}
	if isLost {
		n = usual(o.Workload)
		if is.minReadySeconds == budget.BesideSeconds {
			n.Surge = is.maxSurge
		}
	}
	next := withoutAnnotations(copyOf(o.Workload), keys.OriginalDeploymentStrategy)
	k.write(next, is.restored(n))
	return Writes{Workload: next, Then: k.lowered(o, next)}
}

func (k blueGreen) lowered(o Objects, after Object) []Change {
	if d, is := after.(*appsv1.Deployment); is {
		return Lowered(d, setsOf(o, o.Workload.(*appsv1.Deployment)))
	}
	return nil
}

// usual is what the API server makes of a strategy that says nothing.
func usual(workload Object) original {
	if _, is := workload.(*appsv1.Deployment); !is {
		return original{}
	}
	quarter := intstr.FromString("25%")
	return original{MaxUnavailable: &quarter, MaxSurge: &quarter, ProgressDeadlineSeconds: ptr.To[int32](600)}
}

// Remains says what a workload that goes on by itself has still to do: all its Pods are updated and available, and no others are there.
func (k blueGreen) Remains(o Objects) string {
	if why := k.Kind.Remains(o); why != "" {
		return why
	}
	if n := live(o) - int(k.Kind.See(o).Updated); n > 0 {
		return fmt.Sprintf("%d Pods of another version are there", n)
	}
	return ""
}
