package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options say which changes may go in place.
type Options struct {
	// EnvFromMetadata restarts containers whose environment takes a changed label or annotation (gate InPlaceUpdateEnvFromMetadata).
	EnvFromMetadata bool
	// VerticalScaling changes CPU and memory in place (gate InPlaceWorkloadVerticalScaling).
	VerticalScaling bool
	// IgnoreClaims lets a Pod keep its claims although the claim templates have changed.
	IgnoreClaims bool
}

// Value is the change of one label or annotation; an absent one is nil.
type Value struct{ Old, New *string }

// Change is the way from one template to another in place.
type Change struct {
	// Images and OldImages are what changes, by container.
	Images, OldImages map[string]string
	// Resources are the requests and limits that change, by container; only CPU and memory do.
	Resources map[string]corev1.ResourceRequirements
	// Labels and Annotations change along with it, and so do finalizers.
	Labels, Annotations             map[string]Value
	AddFinalizers, RemoveFinalizers []string
	// RefMetadata are those new labels and annotations that a container's environment takes, by container: they are written when the container
	// restarts, all others at once.
	RefMetadata map[string]metav1.ObjectMeta
}

// TouchesContainers reports whether the change does more than to write labels, annotations and finalizers.
func (c Change) TouchesContainers() bool {
	return len(c.Images)+len(c.Resources)+len(c.RefMetadata) > 0
}

// String describes the change in a line.
func (c Change) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Images)) {
		parts = append(parts, fmt.Sprintf("%s %s -> %s", name, c.OldImages[name], c.Images[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		parts = append(parts, name+" resources")
	}
	for _, name := range slices.Sorted(maps.Keys(c.RefMetadata)) {
		parts = append(parts, name+" environment from metadata")
	}
	if c.touchesMore() {
		parts = append(parts, "metadata")
	}
	if len(parts) == 0 {
		return "nothing but the revision"
	}
	return strings.Join(parts, ", ")
}

// touchesMore reports whether metadata changes besides what containers take into their environment.
func (c Change) touchesMore() bool {
	changed := len(c.Labels) + len(c.Annotations)
	labels, annotations := map[string]bool{}, map[string]bool{}
	for _, meta := range c.RefMetadata {
		for key := range meta.Labels {
			labels[key] = true
		}
		for key := range meta.Annotations {
			annotations[key] = true
		}
	}
	return changed > len(labels)+len(annotations) || len(c.AddFinalizers)+len(c.RemoveFinalizers) > 0
}

// Refusal says why a change can't go in place: the first field that stands against it.
type Refusal struct {
	// Op is what happens to the field: add, remove or replace.
	Op string
	// Path is the field as a JSON pointer within the template.
	Path string
	// Why is the rule.
	Why string
}

// Error returns the refusal in a line.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s %s: %s", r.Op, r.Path, r.Why)
}
