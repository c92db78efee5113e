package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

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

// diff returns the patch from before to after within a part of the object, with the condition in it; nil when they do not differ.
func diff(before, after plan.Object, p part, condition precondition) (types.PatchType, []byte, error) {
	from, to, err := differences(before, after, p)
	if err != nil {
		return "", nil, err
	}
	patchType := types.StrategicMergePatchType
	var patch []byte
	if hasMergeKeys(after) {
		patch, err = strategicpatch.CreateTwoWayMergePatch(from, to, after)
	} else {
		patchType = types.MergePatchType
		patch, err = jsonpatch.CreateMergePatch(from, to)
	}
	if err != nil {
		return "", nil, fmt.Errorf("comparing: %w", err)
	}
	if string(patch) == "{}" {
		return patchType, nil, nil
	}
	patch, err = withCondition(patch, condition)
	return patchType, patch, err
}

// differences returns both objects without what they have in common at the top: comparing a whole Pod takes time, and a strategic patch
// would give the order of finalizers that do not change, so that it is never empty.
func differences(before, after plan.Object, p part) (from, to []byte, err error) {
	was, err := partOf(before, p)
	if err != nil {
		return nil, nil, err
	}
	is, err := partOf(after, p)
	if err != nil {
		return nil, nil, err
	}
	wasMetadata, err := takeMetadata(was)
	if err != nil {
		return nil, nil, err
	}
	isMetadata, err := takeMetadata(is)
	if err != nil {
		return nil, nil, err
	}
	dropEqual(was, is)
	dropEqual(wasMetadata, isMetadata)
	if from, err = withMetadata(was, wasMetadata); err != nil {
		return nil, nil, err
	}
	to, err = withMetadata(is, isMetadata)
	return from, to, err
}

func dropEqual(a, b map[string]json.RawMessage) {
	for field, value := range a {
		if other, ok := b[field]; ok && bytes.Equal(value, other) {
			delete(a, field)
			delete(b, field)
		}
	}
}

// hasMergeKeys reports whether the API server merges lists of this kind by key: it does for its own kinds.
func hasMergeKeys(object plan.Object) bool {
	switch object.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		return true
	default:
		return false
	}
}

// partOf returns the fields of an object that a write covers, encoded.
func partOf(object plan.Object, p part) (map[string]json.RawMessage, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", object, err)
	}
	switch p {
	case main:
		delete(fields, "status")
	case status:
		delete(fields, "spec")
	case resize, ephemeral:
		fields = map[string]json.RawMessage{"spec": fields["spec"]}
	}
	return fields, nil
}

// takeMetadata takes the metadata out of the fields, and out of the metadata what only the server writes.
func takeMetadata(fields map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	raw, ok := fields["metadata"]
	if !ok {
		return nil, nil
	}
	delete(fields, "metadata")
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(raw, &metadata); err != nil {
		return nil, fmt.Errorf("decoding metadata: %w", err)
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, field)
	}
	return metadata, nil
}

func withMetadata(fields, metadata map[string]json.RawMessage) ([]byte, error) {
	if metadata != nil {
		// Also when nothing is left of it: a metadata that is missing on one side only would be patched away as a whole.
		encoded, err := json.Marshal(metadata)
		if err != nil {
			return nil, fmt.Errorf("encoding metadata: %w", err)
		}
		fields["metadata"] = encoded
	}
	return json.Marshal(fields)
}

func withCondition(patch []byte, c precondition) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, fmt.Errorf("decoding a patch: %w", err)
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"] = c.uid
	if c.resourceVersion != "" {
		metadata["resourceVersion"] = c.resourceVersion
	}
	return json.Marshal(fields)
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// conditional returns the patch of a status write that happens only while a label or an annotation is as it was, whatever else has changed;
// false for a write that can't be said so: one that leaves it, and so could be done twice, or concerns more than labels, annotations and
// new conditions.
//
// The API server merges other patches without looking at what is there, and of its preconditions the resourceVersion is too strict, as the
// kubelet writes to a new Pod all the time, and the UID too loose, as a write may arrive long after the controller gave it up and went on.
func conditional(a plan.Action) ([]byte, bool, error) {
	before, ok := a.Before.(*corev1.Pod)
	if !ok || a.While == "" {
		return nil, false, nil
	}
	after := a.After.(*corev1.Pod)
	test, moves := testOf(a.While, before, after)
	conditions, appended := newConditions(before, after)
	if !moves || !appended || !onlyStatus(before, after) {
		return nil, false, nil
	}
	patch := []operation{{"test", "/metadata/uid", before.UID}, test}
	patch = append(patch, changes("/metadata/labels", before.Labels, after.Labels)...)
	patch = append(patch, changes("/metadata/annotations", before.Annotations, after.Annotations)...)
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
func testOf(key string, before, after *corev1.Pod) (operation, bool) {
	at, was, is := "/metadata/labels", before.Labels, after.Labels
	if _, label := is[key]; !label {
		at, was, is = "/metadata/annotations", before.Annotations, after.Annotations
	}
	test := operation{Op: "test", Path: at + "/" + escape(key)} // without a value: that there is none
	if len(was) == 0 {
		test.Path = at
	} else if value, ok := was[key]; ok {
		test.Value = value
	}
	return test, was[key] != is[key]
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

// goneIsConflict turns the answer that a Pod is gone into a conflict: there is nothing to do to it any more.
func goneIsConflict(name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, fmt.Errorf("it is gone: %w", err))
}

// failedTestIsConflict turns the refusal of a conditional patch into a conflict: what it tests has changed.
func failedTestIsConflict(name string, err error) error {
	if !apierrors.IsInvalid(err) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, fmt.Errorf("it is not as it was: %w", err))
}
