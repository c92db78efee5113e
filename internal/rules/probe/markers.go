package probe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Markers are PodProbeMarkers in the order in which they have their say: the older before the younger.
type Markers struct {
	byNamespace map[string][]marker
}

type marker struct {
	*v1alpha1.PodProbeMarker
	selector labels.Selector
}

// NewMarkers returns the markers that ask something: not those that are being deleted, nor those whose selector selects nothing or can't be read.
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

// IsProbed reports whether a Pod can be asked at all: it is active, on a node, and its init containers are done.
func IsProbed(p *corev1.Pod) bool {
	initialized := pod.Condition(p, corev1.PodInitialized)
	return pod.IsActive(p) && pod.IsScheduled(p) && initialized != nil && initialized.Status == corev1.ConditionTrue
}

// Question is one probe of a marker, put to one Pod.
type Question struct {
	Marker *v1alpha1.PodProbeMarker
	Probe  *v1alpha1.PodContainerProbe
}

// Name returns the name that the question has on the node: game#idle.
func (q Question) Name() string { return q.Marker.Name + "#" + q.Probe.Name }

// MarkerOf returns the name of the marker that a question on a node comes from.
func MarkerOf(name string) string {
	marker, _, _ := strings.Cut(name, "#")
	return marker
}

// Clash is a question that is not put because an older marker writes the same condition.
type Clash struct {
	Question
	// With is the older marker.
	With *v1alpha1.PodProbeMarker
}

// Of returns what a Pod is asked, in the order of the markers, and what it is not because two markers would write the same condition. A question to a
// container that the Pod does not have is left out.
func (m Markers) Of(p *corev1.Pod) (questions []Question, clashes []Clash) {
	conditions := map[string]*v1alpha1.PodProbeMarker{}
	for _, of := range m.byNamespace[p.Namespace] {
		if !of.selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		for i := range of.Spec.Probes {
			q := Question{Marker: of.PodProbeMarker, Probe: &of.Spec.Probes[i]}
			if pod.LastingContainer(p, q.Probe.ContainerName) == nil {
				continue
			}
			if kind := q.Probe.PodConditionType; kind != "" {
				if with := conditions[kind]; with != nil {
					clashes = append(clashes, Clash{q, with})
					continue
				}
				conditions[kind] = of.PodProbeMarker
			}
			questions = append(questions, q)
		}
	}
	return questions, clashes
}
