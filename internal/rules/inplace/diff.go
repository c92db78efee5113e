package inplace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
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
	// RefMetadata are those new labels and annotations that a container's environment takes, by container: they are written when the
	// container restarts, all others at once.
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

// Field returns the field of the template that stands against the change, without indexes and names of resources: one of the few dozen that
// a Pod has.
//
// Example: /spec/containers/0/resources/limits/cpu is containers.resources.
func (r *Refusal) Field() string {
	var parts []string
	for _, part := range strings.Split(strings.TrimPrefix(r.Path, "/spec"), "/") {
		if part != "" && strings.Trim(part, "0123456789") != "" && len(parts) < 2 {
			parts = append(parts, part)
		}
	}
	if len(parts) == 2 && parts[0] != "containers" {
		parts = parts[:1]
	}
	return cmp.Or(strings.Join(parts, "."), "template")
}

const onlyThese = "only images, labels, annotations and, where enabled, cpu and memory can change in place"

// Diff returns the way from one revision to another in place, or why there is none.
func Diff(old, new *appsv1.ControllerRevision, o Options) (Change, *Refusal) {
	from, err := revision.Template(old)
	if err != nil {
		return Change{}, &Refusal{Op: "read", Path: "/", Why: err.Error()}
	}
	to, err := revision.Template(new)
	if err != nil {
		return Change{}, &Refusal{Op: "read", Path: "/", Why: err.Error()}
	}
	was, hadClaims := old.Annotations[keys.RevisionClaimTemplatesHash]
	is, hasClaims := new.Annotations[keys.RevisionClaimTemplatesHash]
	if !o.IgnoreClaims && hadClaims && hasClaims && was != is {
		return Change{}, &Refusal{Op: "replace", Path: "/volumeClaimTemplates", Why: "a Pod keeps its claims when it is updated in place"}
	}
	return DiffTemplates(from, to, o)
}

// DiffTemplates returns the way from one template to another in place, or why there is none. Containers are compared by name, but their
// order is part of a Pod that can't be changed.
func DiffTemplates(old, new *corev1.PodTemplateSpec, o Options) (Change, *Refusal) {
	c := Change{
		Images: map[string]string{}, OldImages: map[string]string{},
		Resources:   map[string]corev1.ResourceRequirements{},
		RefMetadata: map[string]metav1.ObjectMeta{},
	}
	if refusal := c.diffContainers(old, new, o); refusal != nil {
		return Change{}, refusal
	}
	from, to := old.Spec.DeepCopy(), new.Spec.DeepCopy()
	from.Containers, to.Containers = nil, nil
	if !equality.Semantic.DeepEqual(from, to) {
		return Change{}, firstDifference("/spec", from, to)
	}
	c.diffMetadata(old, new, o)
	return c, nil
}

func (c *Change) diffContainers(old, new *corev1.PodTemplateSpec, o Options) *Refusal {
	if !slices.EqualFunc(old.Spec.Containers, new.Spec.Containers, func(a, b corev1.Container) bool { return a.Name == b.Name }) {
		return &Refusal{
			Op: "replace", Path: "/spec/containers",
			Why: "containers can't be added, removed, renamed or put in another order in place",
		}
	}
	for i := range old.Spec.Containers {
		from, to := old.Spec.Containers[i].DeepCopy(), &new.Spec.Containers[i]
		path := fmt.Sprintf("/spec/containers/%d", i)
		if from.Image != to.Image {
			if from.Image == "" || to.Image == "" {
				return &Refusal{Op: "replace", Path: path + "/image", Why: "an image can't be added or removed in place"}
			}
			c.Images[from.Name], c.OldImages[from.Name] = to.Image, from.Image
			from.Image = to.Image
		}
		if o.VerticalScaling && !equality.Semantic.DeepEqual(from.Resources, to.Resources) {
			changed, refusal := diffResources(path+"/resources", from.Resources, to.Resources)
			if refusal != nil {
				return refusal
			}
			if len(changed.Limits)+len(changed.Requests) > 0 {
				c.Resources[from.Name] = changed
			}
			from.Resources.Limits, from.Resources.Requests = to.Resources.Limits, to.Resources.Requests
		}
		if !equality.Semantic.DeepEqual(from, to) {
			return firstDifference(path, from, to)
		}
	}
	if len(c.Resources) > 0 && qosClass(&old.Spec) != qosClass(&new.Spec) {
		return &Refusal{
			Op: "replace", Path: "/spec/containers",
			Why: fmt.Sprintf("the QoS class would change from %s to %s", qosClass(&old.Spec), qosClass(&new.Spec)),
		}
	}
	return nil
}

// firstDifference names the first field, in the order of names, in which two values differ.
func firstDifference(path string, from, to any) *Refusal {
	a, b := fieldsOf(from), fieldsOf(to)
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range names {
		was, had := a[name]
		is, has := b[name]
		switch {
		case had && !has:
			return &Refusal{Op: "remove", Path: path + "/" + name, Why: onlyThese}
		case !had && has:
			return &Refusal{Op: "add", Path: path + "/" + name, Why: onlyThese}
		case !reflect.DeepEqual(was, is):
			return &Refusal{Op: "replace", Path: path + "/" + name, Why: onlyThese}
		}
	}
	return &Refusal{Op: "replace", Path: path, Why: onlyThese}
}

func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, &fields)
	}
	if err != nil {
		return nil // no field can be named then
	}
	return fields
}

func (c *Change) diffMetadata(old, new *corev1.PodTemplateSpec, o Options) {
	c.Labels = diffMap(old.Labels, new.Labels)
	c.Annotations = diffMap(old.Annotations, new.Annotations)
	for _, f := range new.Finalizers {
		if !slices.Contains(old.Finalizers, f) {
			c.AddFinalizers = append(c.AddFinalizers, f)
		}
	}
	for _, f := range old.Finalizers {
		if !slices.Contains(new.Finalizers, f) {
			c.RemoveFinalizers = append(c.RemoveFinalizers, f)
		}
	}
	if o.EnvFromMetadata {
		c.findReferenced(new.Spec.Containers)
	}
}

// findReferenced notes the changed keys that containers take into their environment.
func (c *Change) findReferenced(containers []corev1.Container) {
	for i := range containers {
		labels, annotations := environmentKeys(&containers[i])
		meta := metav1.ObjectMeta{Labels: referenced(c.Labels, labels), Annotations: referenced(c.Annotations, annotations)}
		if len(meta.Labels)+len(meta.Annotations) > 0 {
			c.RefMetadata[containers[i].Name] = meta
		}
	}
}

// referenced returns the new values of those changed keys that are among the given ones; removed keys have none.
func referenced(changes map[string]Value, among []string) map[string]string {
	var out map[string]string
	for _, key := range among {
		if change, ok := changes[key]; ok && change.New != nil {
			out = merge(out, map[string]string{key: *change.New})
		}
	}
	return out
}

func diffMap(old, new map[string]string) map[string]Value {
	out := map[string]Value{}
	for key, value := range new {
		if was, ok := old[key]; !ok {
			out[key] = Value{New: &value}
		} else if was != value {
			out[key] = Value{Old: &was, New: &value}
		}
	}
	for key, was := range old {
		if _, ok := new[key]; !ok {
			out[key] = Value{Old: &was}
		}
	}
	return out
}

// scalable returns the resources that can change in place.
func scalable() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// diffResources returns the requests and limits that change. Only values of CPU and memory may: the API server refuses the rest.
func diffResources(path string, old, new corev1.ResourceRequirements) (corev1.ResourceRequirements, *Refusal) {
	from, to := effective(old), effective(new)
	limits, refusal := diffList(path+"/limits", from.Limits, to.Limits)
	if refusal != nil {
		return corev1.ResourceRequirements{}, refusal
	}
	requests, refusal := diffList(path+"/requests", from.Requests, to.Requests)
	return corev1.ResourceRequirements{Limits: limits, Requests: requests}, refusal
}

// effective adds the requests that the API server takes from limits where a template has none.
func effective(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := *r.DeepCopy()
	for name, limit := range out.Limits {
		if _, ok := out.Requests[name]; !ok {
			if out.Requests == nil {
				out.Requests = corev1.ResourceList{}
			}
			out.Requests[name] = limit
		}
	}
	return out
}

func diffList(path string, old, new corev1.ResourceList) (corev1.ResourceList, *Refusal) {
	var changed corev1.ResourceList
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, ok := new[name]; !ok {
			return nil, &Refusal{Op: "remove", Path: path + "/" + string(name), Why: "a request or limit can't be removed in place"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(new)) {
		was, ok := old[name]
		is := new[name]
		switch {
		case !ok:
			return nil, &Refusal{Op: "add", Path: path + "/" + string(name), Why: "a request or limit can't be added in place"}
		case was.Cmp(is) == 0:
		case !slices.Contains(scalable(), name):
			return nil, &Refusal{Op: "replace", Path: path + "/" + string(name), Why: "only cpu and memory can be resized in place"}
		default:
			changed = merge(changed, corev1.ResourceList{name: is})
		}
	}
	return changed, nil
}

// qosClass returns the quality of service class of a Pod with this spec. Resources of the Pod as a whole, where it has any, decide alone; a
// value of zero counts as none.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	all := []corev1.ResourceRequirements{}
	if spec.Resources != nil {
		all = append(all, effective(*spec.Resources))
	} else {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				all = append(all, effective(containers[i].Resources))
			}
		}
	}
	guaranteed, anything := true, false
	for _, r := range all {
		for _, name := range scalable() {
			limit, request := r.Limits[name], r.Requests[name]
			anything = anything || !limit.IsZero() || !request.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && limit.Cmp(request) == 0
		}
	}
	switch {
	case !anything:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}
