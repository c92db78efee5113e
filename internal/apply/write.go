package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// part is the part of an object that a write covers.
type part string

const (
	// main is all but the status.
	main part = ""
	// status is the status, and of Pods the labels and annotations, which the API server takes along.
	status part = "status"
	// resize is the resources of a Pod's containers.
	resize part = "resize"
	// ephemeral is the ephemeral containers of a Pod.
	ephemeral part = "ephemeralcontainers"
)

// precondition is what must still hold of the object when a patch arrives.
type precondition struct {
	uid types.UID
	// resourceVersion is empty where any version will do.
	resourceVersion string
}

func (e *Executor) write(ctx context.Context, owner plan.Object, a plan.Action, condition precondition) (plan.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	switch a.Verb {
	case plan.Create:
		return e.create(ctx, owner, a)
	case plan.Delete:
		return nil, e.delete(ctx, owner, a, condition)
	case plan.Update:
		return e.patch(ctx, owner, a, main, condition)
	case plan.Resize:
		return e.patch(ctx, owner, a, resize, condition)
	case plan.AddContainers:
		object, err := e.patch(ctx, owner, a, ephemeral, condition)
		return object, conflictOf(a.Before, "it is gone", apierrors.IsNotFound, err)
	case plan.UpdateStatus:
		return e.updateStatus(ctx, owner, a, condition)
	default:
		return nil, fmt.Errorf("unknown verb %q", a.Verb)
	}
}

// create makes an object. One of that name that the owner already controls is the one that an earlier try made without our knowledge.
func (e *Executor) create(ctx context.Context, owner plan.Object, a plan.Action) (plan.Object, error) {
	object := copyOf(a.After)
	err := e.Writer.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		existing := named(a.After)
		if readErr := e.Writer.Read(ctx, existing); readErr != nil {
			return nil, errors.Join(err, fmt.Errorf("reading what has the name: %w", readErr))
		}
		if existing.GetDeletionTimestamp() != nil || !e.controls(existing, owner) {
			e.owners.Do(owner.GetUID(), func(m *memory) { m.noteTaken(object.GetName()) })
			return nil, err
		}
		object, err = existing, nil
	}
	if err != nil {
		return nil, err
	}
	return object, e.wrote(owner, object)
}

func (e *Executor) controls(object, owner plan.Object) bool {
	if e.Controls != nil {
		return e.Controls(object, owner)
	}
	return metav1.IsControlledBy(object, owner)
}

func (e *Executor) delete(ctx context.Context, owner plan.Object, a plan.Action, condition precondition) error {
	conditions := metav1.Preconditions{UID: &condition.uid}
	if condition.resourceVersion != "" {
		conditions.ResourceVersion = &condition.resourceVersion
	}
	version, err := e.Writer.Delete(ctx, a.Before, conditions)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.note(owner.GetUID(), a.Before, version)
}

func (e *Executor) patch(ctx context.Context, owner plan.Object, a plan.Action, p part, condition precondition) (plan.Object, error) {
	object := named(a.After)
	if patch, ok, err := conditional(a); err != nil {
		return nil, err
	} else if ok {
		if err := e.Writer.Patch(ctx, object, string(p), types.JSONPatchType, patch); err != nil {
			return nil, conflictOf(object, "it is not as it was", apierrors.IsInvalid, err)
		}
		return object, e.wrote(owner, object)
	}
	patchType, patch, err := diff(a.Before, a.After, p, condition)
	if err != nil || patch == nil {
		return nil, err
	}
	if err := e.Writer.Patch(ctx, object, string(p), patchType, patch); err != nil {
		return nil, err
	}
	return object, e.wrote(owner, object)
}

// updateStatus patches the status, with labels and annotations. Should a server not take those along, they get a write of their own.
func (e *Executor) updateStatus(ctx context.Context, owner plan.Object, a plan.Action, condition precondition) (plan.Object, error) {
	object, err := e.patch(ctx, owner, a, status, condition)
	if err != nil || object == nil || !lacksMetadata(object, a.Before, a.After) {
		return object, err
	}
	rest := a
	rest.Before = copyOf(a.After)
	rest.Before.SetLabels(a.Before.GetLabels())
	rest.Before.SetAnnotations(a.Before.GetAnnotations())
	rest.Before.SetFinalizers(a.Before.GetFinalizers())
	return e.patch(ctx, owner, rest, main, precondition{uid: condition.uid, resourceVersion: object.GetResourceVersion()})
}

// lacksMetadata reports whether metadata that the plan changes did not arrive.
func lacksMetadata(stored, before, after plan.Object) bool {
	if _, isPod := stored.(*corev1.Pod); !isPod {
		return false
	}
	arrived := func(was, want, is map[string]string) bool {
		for key, value := range want {
			if was[key] != value && is[key] != value {
				return false
			}
		}
		for key := range was {
			if _, kept := want[key]; !kept {
				if _, still := is[key]; still {
					return false
				}
			}
		}
		return true
	}
	return !arrived(before.GetLabels(), after.GetLabels(), stored.GetLabels()) ||
		!arrived(before.GetAnnotations(), after.GetAnnotations(), stored.GetAnnotations()) ||
		(!equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) &&
			!equality.Semantic.DeepEqual(after.GetFinalizers(), stored.GetFinalizers()))
}

// named returns an object with nothing but the name of another one, to take the server's answer: what an answer leaves out would stay in an
// object that is filled already.
func named(object plan.Object) plan.Object {
	empty := reflect.New(reflect.TypeOf(object).Elem()).Interface().(plan.Object)
	if untyped, is := empty.(*unstructured.Unstructured); is {
		untyped.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	}
	empty.SetNamespace(object.GetNamespace())
	empty.SetName(object.GetName())
	return empty
}

func copyOf(object plan.Object) plan.Object {
	return object.DeepCopyObject().(plan.Object)
}

// conflictOf turns an answer about a Pod into a conflict: there is nothing to do to a Pod that is gone, and a patch whose test fails is
// called invalid.
func conflictOf(p plan.Object, why string, isConflict func(error) bool, err error) error {
	if !isConflict(err) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, p.GetName(), fmt.Errorf("%s: %w", why, err))
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// conditional returns the patch of a write that happens only while a label or an annotation is as it was, whatever else has changed; false
// for a write that can't be said so: one that leaves it, and so could be done twice, or concerns more than labels, annotations and, of a
// Pod, new conditions.
//
// The API server merges other patches without looking at what is there, and of its preconditions the resourceVersion is too strict, as the
// kubelet writes to a new Pod all the time, and the UID too loose, as a write may arrive long after the controller gave it up and went on.
func conditional(a plan.Action) ([]byte, bool, error) {
	if a.While == "" {
		return nil, false, nil
	}
	test, moves := testOf(a.While, a.Before, a.After)
	conditions, isSaid := beyondMetadata(a.Before, a.After)
	if !moves || !isSaid {
		return nil, false, nil
	}
	patch := []operation{{"test", "/metadata/uid", a.Before.GetUID()}, test}
	patch = append(patch, changes("/metadata/labels", a.Before.GetLabels(), a.After.GetLabels())...)
	patch = append(patch, changes("/metadata/annotations", a.Before.GetAnnotations(), a.After.GetAnnotations())...)
	for _, c := range conditions {
		patch = append(patch, operation{"add", "/status/conditions/-", c})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, false, fmt.Errorf("encoding a patch: %w", err)
	}
	return encoded, true, nil
}

// testOf returns the test that a label or an annotation is as it was, and whether the write changes it.
func testOf(key string, before, after plan.Object) (operation, bool) {
	at, was, is := "/metadata/labels", before.GetLabels(), after.GetLabels()
	if _, label := is[key]; !label {
		at, was, is = "/metadata/annotations", before.GetAnnotations(), after.GetAnnotations()
	}
	test := operation{Op: "test", Path: at + "/" + escape(key)} // without a value: that there is none
	if len(was) == 0 {
		test.Path = at
	} else if value, ok := was[key]; ok {
		test.Value = value
	}
	return test, was[key] != is[key]
}

// beyondMetadata returns the conditions that a write adds to a Pod; false where it changes more than these, labels and annotations.
func beyondMetadata(before, after plan.Object) ([]corev1.PodCondition, bool) {
	was, isPod := before.(*corev1.Pod)
	if !isPod {
		rest := copyOf(after)
		rest.SetLabels(before.GetLabels())
		rest.SetAnnotations(before.GetAnnotations())
		return nil, equality.Semantic.DeepEqual(before, rest)
	}
	is := after.(*corev1.Pod)
	conditions, appended := newConditions(was, is)
	return conditions, appended && onlyStatus(was, is)
}

// newConditions returns what was added to the conditions; false when others changed, or there were none at all.
func newConditions(before, after *corev1.Pod) ([]corev1.PodCondition, bool) {
	was, is := before.Status.Conditions, after.Status.Conditions
	if len(was) == 0 || len(is) < len(was) || !equality.Semantic.DeepEqual(was, is[:len(was)]) {
		return nil, false
	}
	return is[len(was):], true
}

// onlyStatus reports whether nothing but conditions, labels and annotations differs.
func onlyStatus(before, after *corev1.Pod) bool {
	rest := after.DeepCopy()
	rest.Labels, rest.Annotations, rest.Status.Conditions = before.Labels, before.Annotations, before.Status.Conditions
	return equality.Semantic.DeepEqual(before, rest)
}

// changes returns what makes the map at a path what it is after.
func changes(at string, before, after map[string]string) []operation {
	if len(before) == 0 && len(after) > 0 {
		return []operation{{"add", at, after}} // the map itself is not there
	}
	var out []operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[key]; !ok || was != after[key] {
			out = append(out, operation{"add", at + "/" + escape(key), after[key]}) // which replaces what is there
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			out = append(out, operation{Op: "remove", Path: at + "/" + escape(key)})
		}
	}
	return out
}

// escape writes a key as one part of a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
