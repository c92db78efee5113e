package podstate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// TargetOf returns the kind of the workload, whatever its version.
func TargetOf(state *v1beta1.PersistentPodState) schema.GroupKind {
	ref := state.Spec.TargetRef
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// IsFor reports whether a PersistentPodState is for the Pods that a reference to a controller is on.
func IsFor(state *v1beta1.PersistentPodState, controller *metav1.OwnerReference) bool {
	return controller != nil && controller.Name == state.Spec.TargetRef.Name &&
		schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == TargetOf(state)
}

// isBoundBy reports whether a Pod was given its place by the PersistentPodState of this name.
func isBoundBy(name string, p *corev1.Pod) bool { return p.Annotations[keys.InjectedPodState] == name }

// AsksForNodes reports whether Inject has to be told what the nodes have.
func AsksForNodes(spec *v1beta1.PersistentPodStateSpec) bool {
	return spec.Fallback != nil || spec.AvoidUnavailableNodes
}

// Offered returns what tells whether a recorded label is still to be had: on any node, or only on those that are neither cordoned nor
// emptied by a taint where the spec says so.
func Offered(spec *v1beta1.PersistentPodStateSpec, nodes []*corev1.Node) func(key, value string) bool {
	return func(key, value string) bool {
		return slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
			has, ok := n.Labels[key]
			return ok && has == value && (!spec.AvoidUnavailableNodes || isUsable(n))
		})
	}
}

func isUsable(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute
	})
}

// Inject binds a new Pod to the place where the Pod of its name ran before: required labels go into its nodeSelector, each preferred term
// becomes a preferred node affinity, as do nodes of before, annotations and labels that were recorded are restored, and recorded addresses
// are told. Recorded labels of nodes that are not offered are left out. Edit returns the Pod to change; it is not called for a Pod that
// nothing is recorded of. Done again it changes nothing.
func Inject(
	p *corev1.Pod, state *v1beta1.PersistentPodState, offered func(key, value string) bool, edit func() *corev1.Pod,
) {
	record, ok := state.Status.PodStates[p.Name]
	if !ok || p.Name == "" || state.DeletionTimestamp != nil || len(record.NodeTopologyLabels) == 0 {
		return
	}
	labels := maps.Clone(record.NodeTopologyLabels)
	maps.DeleteFunc(labels, func(key, value string) bool { return !offered(key, value) })
	if len(labels) == 0 {
		return
	}
	change := placement{now: p, edit: edit}
	if required := state.Spec.RequiredPersistentTopology; required != nil {
		change.require(some(labels, required.Keys))
	}
	for _, term := range state.Spec.PreferredPersistentTopology {
		change.prefer(term.Weight, some(labels, term.Preference.Keys))
	}
	if !change.bound {
		return
	}
	for i, node := range record.PreviousNodes[:min(len(record.PreviousNodes), int(state.Spec.PreviousNodes))] {
		isNode := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
		change.preferTerm(corev1.PreferredSchedulingTerm{
			Weight: int32(previousWeight >> i), Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{isNode}},
		})
	}
	change.annotate(keys.InjectedPodState, state.Name)
	if _, set := change.now.Annotations[keys.PreviousPodIPs]; state.Spec.RecordPodIPs && len(record.PodIPs) > 0 && !set {
		change.annotate(keys.PreviousPodIPs, strings.Join(record.PodIPs, ","))
	}
	if restore := state.Spec.RestoreAnnotations; restore == nil || *restore {
		for _, annotation := range state.Spec.PersistentPodAnnotations {
			value, recorded := record.Annotations[annotation.Key]
			if _, set := change.now.Annotations[annotation.Key]; recorded && !set {
				change.annotate(annotation.Key, value)
			}
		}
	}
	for _, label := range state.Spec.PersistentPodLabels {
		value, recorded := record.Labels[label.Key]
		if _, set := change.now.Labels[label.Key]; recorded && !set {
			change.now = change.edit()
			metav1.SetMetaDataLabel(&change.now.ObjectMeta, label.Key, value)
		}
	}
}

// previousWeight is the weight of the node before the recorded one; each earlier one has half of it.
const previousWeight = 50

// placement changes a Pod only where it is not yet as it is to be.
type placement struct {
	now  *corev1.Pod
	edit func() *corev1.Pod
	// bound means that the Pod is bound to a place, by now or before.
	bound bool
}

func (c *placement) require(labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		c.bound = true
		if value, set := c.now.Spec.NodeSelector[key]; set && value == labels[key] {
			continue
		}
		c.now = c.edit()
		if c.now.Spec.NodeSelector == nil {
			c.now.Spec.NodeSelector = map[string]string{}
		}
		c.now.Spec.NodeSelector[key] = labels[key]
	}
}

// prefer adds a term. One without labels would match every node.
func (c *placement) prefer(weight int32, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	c.bound = true
	term := corev1.PreferredSchedulingTerm{Weight: weight}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		term.Preference.MatchExpressions = append(term.Preference.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]},
		})
	}
	c.preferTerm(term)
}

func (c *placement) preferTerm(term corev1.PreferredSchedulingTerm) {
	if a := c.now.Spec.Affinity; a != nil && a.NodeAffinity != nil && slices.ContainsFunc(
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
		func(has corev1.PreferredSchedulingTerm) bool { return equality.Semantic.DeepEqual(has, term) },
	) {
		return
	}
	c.now = c.edit()
	if c.now.Spec.Affinity == nil {
		c.now.Spec.Affinity = &corev1.Affinity{}
	}
	if c.now.Spec.Affinity.NodeAffinity == nil {
		c.now.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	preferred := &c.now.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, term)
}

func (c *placement) annotate(key, value string) {
	if has, set := c.now.Annotations[key]; set && has == value {
		return
	}
	c.now = c.edit()
	if c.now.Annotations == nil {
		c.now.Annotations = map[string]string{}
	}
	c.now.Annotations[key] = value
}
