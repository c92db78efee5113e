package podprobemarker

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// eventConflict tells of a probe that is not run because another marker writes the same condition.
const eventConflict = "ConditionTaken"

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(v Snapshot) plan.Plan {
	m := v.Marker
	b := plan.For(fmt.Sprintf("PodProbeMarker %s/%s   pods %d", m.Namespace, m.Name, len(v.Pods)))
	after := m.DeepCopy()
	update := plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: m, After: after}
	switch {
	case m.DeletionTimestamp == nil:
		if controllerutil.AddFinalizer(after, keys.ProbeCleanup) {
			update.What, update.Why = "add the finalizer", "its probes are removed from the nodes first when it is deleted"
			b.Do(update)
		}
	case !controllerutil.RemoveFinalizer(after, keys.ProbeCleanup):
	case v.Nodes > 0:
		b.Hold(plan.Hold{Code: reason.WaitDeletion, Why: fmt.Sprintf("%d nodes still ask for it", v.Nodes)})
	default:
		update.What, update.Why = "remove the finalizer", "no node asks for it any more"
		b.Do(update)
	}
	v.reportConflicts(b)
	return b.Plan()
}

// reportConflicts names, once for each, the probes that are not run because an older marker writes their condition.
func (v Snapshot) reportConflicts(b *plan.Builder) {
	all := probe.NewMarkers(v.Beside)
	told := map[string]bool{}
	for _, p := range v.Pods {
		_, conflicts := all.ProbesOf(p)
		for _, c := range conflicts {
			if c.Marker.Name != v.Marker.Name || told[c.Spec.Name] {
				continue
			}
			told[c.Spec.Name] = true
			b.Hold(plan.Hold{Code: reason.Conflict, Event: eventConflict, Why: fmt.Sprintf(
				"probe %s is not run on Pods that PodProbeMarker %s selects as well: both write condition %s",
				c.Spec.Name, c.With.Name, c.Spec.PodConditionType)})
		}
	}
}

// Status counts the Pods.
func Status(v Snapshot, _ plan.Plan, _ apply.Outcome) v1alpha1.PodProbeMarkerStatus {
	if v.Marker.DeletionTimestamp != nil {
		return v.Marker.Status
	}
	return v1alpha1.PodProbeMarkerStatus{ObservedGeneration: v.Marker.Generation, MatchedPods: int64(len(v.Pods))}
}
