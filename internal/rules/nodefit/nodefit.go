// Package nodefit says which nodes the Pods of a template fit: where one should be created, and where one that is there may stay.
//
// A node should run a Pod when the template's node name, node selector and required node affinity match it, and the Pod tolerates its
// taints of the effects NoSchedule and NoExecute. A Pod that is there may stay as long as it tolerates those of NoExecute. Neither
// readiness nor room on the node matters: a daemon is wanted on a full or a broken node most of all. These are the rules of the DaemonSets
// of Kubernetes.
//
// A job is more choosy: it tolerates what its template says and no more, cordons included, and it is not for a node that is too small for
// its Pod even when nothing else runs there.
package nodefit

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Fit is what a template asks of a node.
type Fit struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	// requests must not be more than all that the node has.
	requests corev1.ResourceList
}

// Verdict is what may be on a node.
type Verdict struct {
	// Run means that the node should run a Pod.
	Run bool
	// Stay means that a Pod that is there may stay. It is true wherever Run is.
	Stay bool
}

// OfJob returns what the Pods of a job's template ask of a node.
func OfJob(template *corev1.PodSpec) Fit {
	f := Of(template)
	f.tolerations = template.Tolerations
	f.requests = resource.PodRequests(&corev1.Pod{Spec: *template}, resource.PodResourcesOptions{})
	return f
}

// Of returns what the Pods of a template ask of a node; they tolerate what Tolerations returns.
func Of(template *corev1.PodSpec) Fit {
	return Fit{
		nodeName:    template.NodeName,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *template}),
		tolerations: Tolerations(template),
	}
}

// On evaluates a node. An affinity that can't be read matches no node.
func (f Fit) On(node *corev1.Node) Verdict {
	if f.nodeName != "" && f.nodeName != node.Name {
		return Verdict{}
	}
	if matches, err := f.affinity.Match(node); err != nil || !matches {
		return Verdict{}
	}
	v := Verdict{Run: f.hasRoom(node), Stay: true}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !f.tolerates(&cordon) {
		v.Run = false // its taint may still be on its way
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || f.tolerates(taint) {
			continue
		}
		v.Run = false
		if taint.Effect == corev1.TaintEffectNoExecute {
			v.Stay = false
		}
	}
	return v
}

// hasRoom reports whether the Pod fits an empty node.
func (f Fit) hasRoom(node *corev1.Node) bool {
	if most, ok := node.Status.Allocatable[corev1.ResourcePods]; ok && most.IsZero() && f.requests != nil {
		return false
	}
	for name, request := range f.requests {
		if most := node.Status.Allocatable[name]; request.Cmp(most) > 0 {
			return false
		}
	}
	return true
}

// Endures reports whether a Pod with these tolerations may stay on a node: whether it tolerates, if only for a while, the taints of effect
// NoExecute.
func Endures(tolerations []corev1.Toleration, node *corev1.Node) bool {
	f := Fit{tolerations: tolerations}
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && !f.tolerates(&t)
	})
}

// tolerates leaves out the operators that compare numbers: the gate that Kubernetes has for them is off.
func (f Fit) tolerates(taint *corev1.Taint) bool {
	return slices.ContainsFunc(f.tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, false) })
}

// Changed reports whether a node changed in what any template could ask of it: its labels, its taints, whether it is cordoned, and
// how large it is. Heartbeats change none of these.
func Changed(before, after *corev1.Node) bool {
	sameTaint := func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect }
	return before.Spec.Unschedulable != after.Spec.Unschedulable || !maps.Equal(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, sameTaint) ||
		!maps.EqualFunc(before.Status.Allocatable, after.Status.Allocatable, func(a, b quantity.Quantity) bool { return a.Cmp(b) == 0 })
}

// Tolerations returns the tolerations of the Pods of a template: its own, and those of a daemon, which stays on a node with problems.
// One of its own for the same taint is replaced.
func Tolerations(template *corev1.PodSpec) []corev1.Toleration {
	out := slices.Clone(template.Tolerations)
	for _, added := range defaultTolerations(template.HostNetwork) {
		found := false
		for i := range out {
			if out[i].MatchToleration(&added) {
				out[i], found = added, true
			}
		}
		if !found {
			out = append(out, added)
		}
	}
	return out
}

// defaultTolerations: a Pod on the node's own network need not wait for the Pods' network, which it may be what brings it about.
func defaultTolerations(hostNetwork bool) []corev1.Toleration {
	var out []corev1.Toleration
	add := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	add(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	add(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure,
		corev1.TaintNodeUnschedulable)
	if hostNetwork {
		add(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return out
}

// Pin has the scheduler bind the Pod to the node and to no other. What the template requires of nodes has been evaluated already, and
// is replaced; what it prefers, and how it stands to other Pods, stays. The Pod must not share its affinity with another object.
func Pin(p *corev1.PodSpec, node string) {
	if p.Affinity == nil {
		p.Affinity = &corev1.Affinity{}
	}
	if p.Affinity.NodeAffinity == nil {
		p.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}
}

// NodeOf returns the node that the Pod is on, or the one it is pinned to while no scheduler has bound it; empty when it is neither.
func NodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
