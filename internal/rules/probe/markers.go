// Package probe decides which probes PodProbeMarkers run in which Pods, when the outcomes of a probe become its result, and what a result
// changes on the Pod.
//
// Its promise: the probes of a node follow from the markers and the Pods alone, so that a probe ends once its marker or its Pod does; and a
// result that is known is on the Pod, whatever was written before.
//
// Example: a marker "game" with a probe "idle" runs as game#idle. It succeeds, with a policy for success of the label idle=true and one for
// failure of the annotation deletion-cost=10: the Pod gets the label, and loses the annotation.
package probe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Markers are PodProbeMarkers by namespace, the older before the younger.
type Markers struct {
	byNamespace map[string][]marker
}

type marker struct {
	*v1alpha1.PodProbeMarker
	selector labels.Selector
}

// NewMarkers returns the markers that run probes: not those that are being deleted, nor those whose selector selects nothing or can't be
// read.
func NewMarkers(all []*v1alpha1.PodProbeMarker) Markers {
	out := Markers{byNamespace: map[string][]marker{}}
	for _, m := range all {
		if selector := Selector(m); m.DeletionTimestamp == nil && selector != nil {
			out.byNamespace[m.Namespace] = append(out.byNamespace[m.Namespace], marker{m, selector})
		}
	}
	for _, of := range out.byNamespace {
		slices.SortFunc(of, func(a, b marker) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
	}
	return out
}

// Selector returns the marker's selector; nil if it selects nothing or can't be read.
func Selector(m *v1alpha1.PodProbeMarker) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil
	}
	return selector
}

// IsProbed reports whether probes run in a Pod: it is active, on a node, and its init containers have ended. Caches leave the condition of
// that out for a Pod that runs (observe.SlimPod).
func IsProbed(p *corev1.Pod) bool {
	initialized := p.Status.Phase == corev1.PodRunning
	if c := pod.Condition(p, corev1.PodInitialized); c != nil {
		initialized = c.Status == corev1.ConditionTrue
	}
	return pod.IsActive(p) && pod.IsScheduled(p) && initialized
}

// Probe is a probe of a marker in one Pod.
type Probe struct {
	Marker *v1alpha1.PodProbeMarker
	Spec   *v1alpha1.PodContainerProbe
}

// Name returns the name that the probe has on the node: game#idle.
func (p Probe) Name() string { return p.Marker.Name + "#" + p.Spec.Name }

// MarkerOf returns the name of the marker of a probe on a node.
func MarkerOf(name string) string {
	marker, _, _ := strings.Cut(name, "#")
	return marker
}

// Conflict is a probe that is not run because an older marker writes the same condition.
type Conflict struct {
	Probe
	// With is the older marker.
	With *v1alpha1.PodProbeMarker
}

// ProbesOf returns the probes that run in a Pod, in the order of the markers, and those that do not because two markers would write the
// same condition. A probe of a container that the Pod does not have is left out.
func (m Markers) ProbesOf(p *corev1.Pod) (probes []Probe, conflicts []Conflict) {
	conditions := map[string]*v1alpha1.PodProbeMarker{}
	for _, of := range m.byNamespace[p.Namespace] {
		if !of.selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		for i := range of.Spec.Probes {
			q := Probe{Marker: of.PodProbeMarker, Spec: &of.Spec.Probes[i]}
			if pod.Lasting(p, q.Spec.ContainerName) == nil {
				continue
			}
			if kind := q.Spec.PodConditionType; kind != "" {
				if with := conditions[kind]; with != nil {
					conflicts = append(conflicts, Conflict{q, with})
					continue
				}
				conditions[kind] = of.PodProbeMarker
			}
			probes = append(probes, q)
		}
	}
	return probes, conflicts
}

// PodProbes returns the probes that a node runs in its Pods, sorted by Pod, and how many it does not run because there are too many.
func (m Markers) PodProbes(pods []*corev1.Pod) ([]v1alpha1.PodProbe, LeftOut) {
	probed := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !IsProbed(p) })
	slices.SortFunc(probed, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var of []v1alpha1.PodProbe
	var all []candidate
	for i, p := range probed {
		of = append(of, v1alpha1.PodProbe{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID), IP: p.Status.PodIP})
		probes, _ := m.ProbesOf(p)
		for _, q := range probes {
			if spec, ok := resolve(q.Spec.Probe, pod.Lasting(p, q.Spec.ContainerName).Ports); ok {
				one := v1alpha1.ContainerProbe{Name: q.Name(), ContainerName: q.Spec.ContainerName, Probe: spec}
				all = append(all, candidate{pod: i, probe: one, of: q.Marker, size: sizeOf(of[i], one)})
			}
		}
	}
	return share(of, all)
}

// resolve replaces the names of ports by their numbers. It is not ok when the container has no port of the name.
func resolve(probe v1alpha1.ContainerProbeSpec, ports []corev1.ContainerPort) (out v1alpha1.ContainerProbeSpec, ok bool) {
	out = *probe.DeepCopy()
	var port *intstr.IntOrString
	switch {
	case out.HTTPGet != nil:
		port = &out.HTTPGet.Port
	case out.TCPSocket != nil:
		port = &out.TCPSocket.Port
	}
	if port == nil || port.Type == intstr.Int {
		return out, true
	}
	i := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
	if i < 0 {
		return out, false
	}
	*port = intstr.FromInt32(ports[i].ContainerPort)
	return out, true
}
