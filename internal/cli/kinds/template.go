package kinds

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// subsetTemplates are the fields of a UnitedDeployment's template, one of which is set.
func subsetTemplates() []string {
	return []string{"cloneSetTemplate", "advancedStatefulSetTemplate", "statefulSetTemplate", "deploymentTemplate"}
}

// TemplatePath returns the path of the Pod template of an object; nil for a kind without one.
func (k Kind) TemplatePath(o *unstructured.Unstructured) []string {
	if k.GroupVersionKind.Kind != "UnitedDeployment" {
		return k.Template
	}
	for _, field := range subsetTemplates() {
		if _, found, _ := unstructured.NestedMap(o.Object, "spec", "template", field); found {
			return []string{"spec", "template", field, "spec", "template"}
		}
	}
	return nil
}

// podSpecPath returns the path of what holds containers; nil for a kind without them.
func (k Kind) podSpecPath(o *unstructured.Unstructured) []string {
	if k.GroupVersionKind.Kind == "SidecarSet" {
		return []string{"spec"}
	}
	if path := k.TemplatePath(o); path != nil {
		return append(slices.Clone(path), "spec")
	}
	return nil
}

// Images returns the images of an object's containers, as NAME=IMAGE, init containers last.
func (k Kind) Images(o *unstructured.Unstructured) []string {
	spec, _, _ := unstructured.NestedMap(o.Object, k.podSpecPath(o)...)
	return ImagesIn(spec)
}

// ImagesIn returns the images of the containers of a Pod spec, as NAME=IMAGE, init containers last.
func ImagesIn(podSpec map[string]any) []string {
	var out []string
	for _, field := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedSlice(podSpec, field)
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok {
				out = append(out, fmt.Sprintf("%v=%v", c["name"], c["image"]))
			}
		}
	}
	return out
}

// SetImages gives containers other images, by their names; * means all containers, without init containers. Every name has to be that of a
// container.
func (k Kind) SetImages(o *unstructured.Unstructured, images map[string]string) error {
	path := k.podSpecPath(o)
	if path == nil {
		return fmt.Errorf("%s has no containers", k)
	}
	missing := map[string]bool{}
	for name := range images {
		missing[name] = true
	}
	var names []string
	for _, field := range []string{"containers", "initContainers"} {
		at := append(slices.Clone(path), field)
		containers, found, err := unstructured.NestedSlice(o.Object, at...)
		if err != nil || !found {
			continue
		}
		for _, one := range containers {
			c, ok := one.(map[string]any)
			if !ok {
				continue
			}
			name := fmt.Sprint(c["name"])
			names = append(names, name)
			image, named := images[name]
			if all, has := images["*"]; has && !named && field == "containers" {
				image, named = all, true
				delete(missing, "*")
			}
			if named {
				c["image"] = image
				delete(missing, name)
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, at...); err != nil {
			return fmt.Errorf("setting images: %w", err)
		}
	}
	for name := range missing {
		return fmt.Errorf("%s %s has no container %q: it has %v", k, o.GetName(), name, names)
	}
	return nil
}
