package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Results are the results of the probes of one Pod, by the names of the probes.
type Results map[string]v1alpha1.ContainerProbeState

// ResultsOf returns the results of a Pod as the daemon has reported them.
func ResultsOf(p *corev1.Pod, s *v1alpha1.NodePodProbeStatus) Results {
	for i := range s.PodProbeStatuses {
		of := &s.PodProbeStatuses[i]
		if of.UID != string(p.UID) {
			continue
		}
		out := Results{}
		for _, state := range of.ProbeStates {
			out[state.Name] = state
		}
		return out
	}
	return nil
}

// Mark returns the Pod with the results of its probes on it: conditions, and what the marker policies say. It returns the Pod itself when
// it has them.
func Mark(p *corev1.Pod, probes []Probe, results Results) *corev1.Pod {
	labels, annotations, conditions := maps.Clone(p.Labels), maps.Clone(p.Annotations), slices.Clone(p.Status.Conditions)
	for _, q := range probes {
		result, known := results[q.Name()]
		if !known {
			continue
		}
		if kind := corev1.PodConditionType(q.Spec.PodConditionType); kind != "" {
			conditions = setCondition(conditions, condition(kind, result))
		}
		put, remove := policiesFor(q.Spec.MarkerPolicy, result.State)
		labels = replace(labels, put.Labels, remove.Labels)
		annotations = replace(annotations, put.Annotations, remove.Annotations)
	}
	if maps.Equal(labels, p.Labels) && maps.Equal(annotations, p.Annotations) &&
		equality.Semantic.DeepEqual(conditions, p.Status.Conditions) {
		return p // also when two policies want the opposite of each other: the younger marker's is applied last
	}
	after := p.DeepCopy()
	after.Labels, after.Annotations, after.Status.Conditions = labels, annotations, conditions
	return after
}

// condition returns the condition for a result. Unknown shows as False.
func condition(kind corev1.PodConditionType, result v1alpha1.ContainerProbeState) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Message: result.Message,
		LastProbeTime: result.LastProbeTime, LastTransitionTime: result.LastTransitionTime,
	}
	if result.State == v1alpha1.ProbeSucceeded {
		c.Status = corev1.ConditionTrue
	}
	return c
}

// setCondition leaves a condition of the same status and message as it is: the time of the last probe alone is not worth a write.
func setCondition(all []corev1.PodCondition, want corev1.PodCondition) []corev1.PodCondition {
	i := slices.IndexFunc(all, func(c corev1.PodCondition) bool { return c.Type == want.Type })
	if i < 0 {
		return append(all, want)
	}
	old := all[i]
	if old.Status == want.Status && old.Message == want.Message {
		return all
	}
	if old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
	}
	want.ObservedGeneration = old.ObservedGeneration
	all[i] = want
	return all
}

// FromConditions returns the results that the provider of a virtual node has written on a Pod as conditions.
func FromConditions(p *corev1.Pod, probes []Probe) Results {
	out := Results{}
	for _, q := range probes {
		c := pod.Condition(p, corev1.PodConditionType(q.Spec.PodConditionType))
		if c == nil || c.Status == corev1.ConditionUnknown {
			continue
		}
		state := v1alpha1.ContainerProbeState{
			Name: q.Name(), State: v1alpha1.ProbeFailed, Message: c.Message,
			LastProbeTime: c.LastProbeTime, LastTransitionTime: c.LastTransitionTime,
		}
		if c.Status == corev1.ConditionTrue {
			state.State = v1alpha1.ProbeSucceeded
		}
		out[q.Name()] = state
	}
	return out
}

// policiesFor returns the policy for a result, and the one for the opposite result; none for a result that is not known.
func policiesFor(policies []v1alpha1.ProbeMarkerPolicy, result v1alpha1.ProbeState) (put, remove v1alpha1.ProbeMarkerPolicy) {
	if result != v1alpha1.ProbeSucceeded && result != v1alpha1.ProbeFailed {
		return put, remove
	}
	for _, policy := range policies {
		if policy.State == result {
			put = policy
		} else {
			remove = policy
		}
	}
	return put, remove
}

// replace changes m, which may be nil.
func replace(m, put, remove map[string]string) map[string]string {
	for key := range remove {
		delete(m, key)
	}
	if m == nil && len(put) > 0 {
		m = map[string]string{}
	}
	maps.Copy(m, put)
	return m
}

// ProviderProbe is a probe that the provider of a virtual node is to run in a container, and the condition that it is to set.
//
// Wire: providers read a list of them in annotation keys.PodProbes.
type ProviderProbe struct {
	// Name is that of the probe alone, without its marker.
	Name             string                      `json:"name"`
	ContainerName    string                      `json:"containerName"`
	Probe            v1alpha1.ContainerProbeSpec `json:"probe"`
	PodConditionType string                      `json:"podConditionType"`
}

// Annotate sets the annotations of a Pod that tell the provider of its node which probes to run, or removes them, and reports whether that
// changes the Pod. edit returns the Pod to change, and is called only then.
//
// A provider runs only probes with a condition, because conditions are how it reports. Of two probes of the same name for the same
// container, that of the older marker counts.
//
// Example: probe healthy of marker m makes kruise.io/podprobemarker-list "m" and kruise.io/podprobe
// [{"name":"healthy","containerName":"main","probe":{"exec":{"command":["ask"]}},"podConditionType":"example.com/healthy"}].
func (m Markers) Annotate(p *corev1.Pod, edit func() *corev1.Pod) (changed bool, err error) {
	probes, names := m.forProvider(p)
	wanted := map[string]string{}
	if len(probes) > 0 {
		text, err := json.Marshal(probes)
		if err != nil {
			return false, fmt.Errorf("encoding the probes of Pod %s: %w", p.Name, err)
		}
		wanted[keys.PodProbes], wanted[keys.PodProbeMarkers] = string(text), strings.Join(names, ",")
	}
	none := map[string]string{keys.PodProbes: "", keys.PodProbeMarkers: ""}
	annotations := replace(maps.Clone(p.Annotations), wanted, none)
	if maps.Equal(annotations, p.Annotations) {
		return false, nil
	}
	edit().Annotations = annotations
	return true, nil
}

// forProvider returns the probes in the order of the markers, and the names of the markers that they are of, sorted.
func (m Markers) forProvider(p *corev1.Pod) (probes []ProviderProbe, names []string) {
	all, _ := m.ProbesOf(p)
	type place struct{ container, name string }
	taken, of := map[place]bool{}, map[string]bool{}
	for _, q := range all {
		at := place{q.Spec.ContainerName, q.Spec.Name}
		if q.Spec.PodConditionType == "" || taken[at] {
			continue
		}
		taken[at], of[q.Marker.Name] = true, true
		probes = append(probes, ProviderProbe{
			Name: q.Spec.Name, ContainerName: q.Spec.ContainerName, Probe: q.Spec.Probe, PodConditionType: q.Spec.PodConditionType,
		})
	}
	return probes, slices.Sorted(maps.Keys(of))
}
