package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// ProviderProbe is one question that the provider of a virtual node is to put to a container, and the condition in which it is to answer.
//
// Wire: providers read a list of them in annotation keys.PodProbes.
type ProviderProbe struct {
	// Name is that of the probe alone, without its marker.
	Name             string                      `json:"name"`
	ContainerName    string                      `json:"containerName"`
	Probe            v1alpha1.ContainerProbeSpec `json:"probe"`
	PodConditionType string                      `json:"podConditionType"`
}

// Instruct puts on a Pod what the provider of its node is to ask, and takes off what it is not to ask any more. It reports whether anything has
// changed. edit returns the Pod to change, and is called only then.
//
// Only what shows as a condition can be asked there, for that is how providers answer. Of two probes of the same name for the same container, that
// of the older marker counts.
//
// Example: probe healthy of marker m makes kruise.io/podprobemarker-list "m" and kruise.io/podprobe
// [{"name":"healthy","containerName":"main","probe":{"exec":{"command":["ask"]}},"podConditionType":"example.com/healthy"}].
func (m Markers) Instruct(p *corev1.Pod, edit func() *corev1.Pod) (changed bool, err error) {
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
	if !differ(p.Annotations, wanted, none) {
		return false, nil
	}
	after := edit()
	after.Annotations = replace(after.Annotations, wanted, none)
	return true, nil
}

// forProvider returns the probes in the order of the markers, and the names of the markers that they are of, sorted.
func (m Markers) forProvider(p *corev1.Pod) (probes []ProviderProbe, names []string) {
	questions, _ := m.Of(p)
	type place struct{ container, name string }
	taken, of := map[place]bool{}, map[string]bool{}
	for _, q := range questions {
		at := place{q.Probe.ContainerName, q.Probe.Name}
		if q.Probe.PodConditionType == "" || taken[at] {
			continue
		}
		taken[at], of[q.Marker.Name] = true, true
		probes = append(probes, ProviderProbe{
			Name: q.Probe.Name, ContainerName: q.Probe.ContainerName, Probe: q.Probe.Probe, PodConditionType: q.Probe.PodConditionType,
		})
	}
	return probes, slices.Sorted(maps.Keys(of))
}
