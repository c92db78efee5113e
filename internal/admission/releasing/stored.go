package releasing

import (
	"fmt"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// stored returns what the workload is stored as, and what to tell who writes it.
func (w *write) stored() (steer.Object, []string) {
	o := w.objects
	_, wasMarked := steer.MarkOf(w.old)
	if wasMarked {
		o.Workload = w.kind.Guard(w.old, o)
		if o.Workload.GetLabels()[keys.WorkloadType] == "" { // the object was replaced as a whole, by a tool that knows nothing of releases
			o.Workload = o.Workload.DeepCopyObject().(steer.Object)
			steer.Carry(w.old, o.Workload)
		}
	}
	if !steer.IsRelease(w.old, w.objects.Workload) {
		return o.Workload, nil
	}
	if why := w.passes(wasMarked); why != "" {
		return o.Workload, []string{fmt.Sprintf("the change is not released in steps by Rollout %s: %s", w.rollout.Name, why)}
	}
	steps := len(steer.StepsOf(&w.rollout.Spec.Strategy).Steps)
	told := fmt.Sprintf("the change is released by Rollout %s in %d steps", w.rollout.Name, steps)
	return steer.Mark(w.kind.Freeze(o), w.rollout.Name), []string{told}
}

// passes says why a change of the template is not intercepted; empty if it is.
func (w *write) passes(wasMarked bool) string {
	if why := w.kind.Refuses(w.objects); why != "" {
		return why
	}
	steps := steer.StepsOf(&w.rollout.Spec.Strategy)
	leads := len(steps.TrafficRoutings) > 0 || steps.TrafficRoutingRef != ""
	if !wasMarked && leads && w.kind.See(w.objects).Mixed {
		return "it has Pods of more than one revision, between which traffic can't be led: wait until it has one"
	}
	return ""
}
