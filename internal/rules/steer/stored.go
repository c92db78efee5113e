package steer

import (
	"fmt"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Update is a write to a workload that a Rollout releases.
type Update struct {
	// Old is the workload before it. Objects are the workload as it is written, and what belongs to it.
	Old Object
	Objects
	Kind    Kind
	Rollout *v1beta1.Rollout
}

// Stored returns what a workload is stored as, and what to tell who writes it: a release that is under way keeps what it needs, and a
// change of the template begins one.
func Stored(u Update) (Object, []string) {
	o, warnings := u.Objects, []string(nil)
	o.Workload = Written(o.Workload)
	_, wasMarked := MarkOf(u.Old)
	if wasMarked {
		o.Workload = u.Kind.Guard(u.Old, o)
		if o.Workload.GetLabels()[keys.WorkloadType] == "" { // the object was replaced as a whole, by a tool that knows nothing of releases
			o.Workload = copyOf(o.Workload)
			Carry(u.Old, o.Workload)
		}
	}
	if IsRelease(u.Old, u.Workload) {
		if why := u.passes(wasMarked); why != "" {
			return o.Workload, []string{fmt.Sprintf("the change is not released in steps by Rollout %s: %s", u.Rollout.Name, why)}
		}
		told := fmt.Sprintf("the change is released by Rollout %s in %d steps", u.Rollout.Name,
			len(StepsOf(&u.Rollout.Spec.Strategy).Steps))
		if stages, err := Preview(u.Kind, o, u.Rollout.Spec.Strategy); err == nil && len(stages) > 0 && !wasMarked {
			told += "; " + stages[0].String()
		}
		o.Workload, warnings = Mark(u.Kind.Freeze(o), u.Rollout.Name), []string{told}
	}
	if wasMarked && u.leads() {
		o.Workload = TrafficFirst(o)
	}
	return o.Workload, warnings
}

// leads tells whether the release leads traffic.
func (u *Update) leads() bool {
	steps := StepsOf(&u.Rollout.Spec.Strategy)
	return len(steps.TrafficRoutings) > 0 || steps.TrafficRoutingRef != ""
}

// passes says why a change of the template is not intercepted; empty if it is.
func (u *Update) passes(wasMarked bool) string {
	if why := u.Kind.Refuses(u.Objects); why != "" {
		return why
	}
	if !wasMarked && u.leads() && u.Kind.See(u.Objects).Mixed {
		return "it has Pods of more than one revision, between which traffic can't be led: wait until it has one"
	}
	return ""
}

// Intercepts tells whether a Rollout releases changes of its workload: not one that is on its way out, nor one without a strategy.
func Intercepts(r *v1beta1.Rollout) bool {
	return r.DeletionTimestamp == nil && !r.Spec.Disabled && r.Status.Phase != v1beta1.RolloutPhaseDisabled &&
		r.Status.Phase != v1beta1.RolloutPhaseDisabling && StepsOf(&r.Spec.Strategy) != nil
}
