package apply

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
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
