package podprobemarker

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// eventConflict tells of a probe that is not asked because another marker writes the same condition.
const eventConflict = "ConditionTaken"

// Snapshot is all that one pass looks at.
type Snapshot struct {
	Marker *v1alpha1.PodProbeMarker
	// Pods are those that the marker selects and that can be asked.
	Pods []*corev1.Pod
	// Beside are all markers of the namespace.
	Beside []*v1alpha1.PodProbeMarker
	// Asking is the number of nodes that ask for the marker; only looked for when the marker is being deleted.
	Asking int
}

// Observe makes every read of a pass.
func Observe(ctx context.Context, r observe.Reader, m *v1alpha1.PodProbeMarker) (Snapshot, error) {
	v := Snapshot{Marker: m}
	if m.DeletionTimestamp != nil {
		var nodes v1alpha1.NodePodProbeList
		if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return Snapshot{}, fmt.Errorf("listing NodePodProbes: %w", err)
		}
		for i := range nodes.Items {
			if on(&nodes.Items[i])[client.ObjectKeyFromObject(m)] {
				v.Asking++
			}
		}
		return v, nil
	}
	selector := probe.Selector(m)
	if selector == nil {
		return v, nil
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return Snapshot{}, fmt.Errorf("listing Pods: %w", err)
	}
	for i := range pods.Items {
		if probe.IsProbed(&pods.Items[i]) {
			v.Pods = append(v.Pods, &pods.Items[i])
		}
	}
	var markers v1alpha1.PodProbeMarkerList
	if err := r.List(ctx, &markers, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return Snapshot{}, fmt.Errorf("listing PodProbeMarkers: %w", err)
	}
	for i := range markers.Items {
		v.Beside = append(v.Beside, &markers.Items[i])
	}
	return v, nil
}

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(v Snapshot) plan.Plan {
	m := v.Marker
	b := plan.For(fmt.Sprintf("PodProbeMarker %s/%s   pods %d", m.Namespace, m.Name, len(v.Pods)))
	held := slices.Contains(m.Finalizers, keys.ProbeCleanup)
	switch {
	case m.DeletionTimestamp != nil && held && v.Asking == 0:
		after := m.DeepCopy()
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == keys.ProbeCleanup })
		b.Do(plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: m, After: after, What: "let go", Why: "no node asks for it any more"})
	case m.DeletionTimestamp != nil && held:
		b.Hold(plan.Hold{Why: fmt.Sprintf("%d nodes still ask for it", v.Asking)})
	case m.DeletionTimestamp == nil && !held:
		after := m.DeepCopy()
		after.Finalizers = append(after.Finalizers, keys.ProbeCleanup)
		b.Do(plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: m, After: after, What: "hold", Why: "its probes have to be taken off the nodes first when it is deleted"})
	}
	v.reportConflicts(b)
	return b.Plan()
}

// reportConflicts names, once for each, the probes that are not asked because an older marker writes their condition.
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
			b.Hold(plan.Hold{Event: eventConflict, Why: fmt.Sprintf(
				"probe %s is not run on Pods that PodProbeMarker %s selects as well: both write condition %s", c.Spec.Name, c.With.Name, c.Spec.PodConditionType)})
		}
	}
}

// Status counts what was seen.
func Status(v Snapshot) v1alpha1.PodProbeMarkerStatus {
	if v.Marker.DeletionTimestamp != nil {
		return v.Marker.Status
	}
	return v1alpha1.PodProbeMarkerStatus{ObservedGeneration: v.Marker.Generation, MatchedPods: int64(len(v.Pods))}
}
