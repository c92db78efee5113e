package apply

import (
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
)

// precondition is what must still hold of the object when a patch arrives.
type precondition struct {
	uid types.UID
	// resourceVersion is empty where any version will do.
	resourceVersion string
}

// diff returns the patch from before to after within a part of the object, with the condition in it; nil when they do not differ.
func diff(before, after plan.Object, p part, condition precondition) (types.PatchType, []byte, error) {
	from, err := partOf(before, p)
	if err != nil {
		return "", nil, err
	}
	to, err := partOf(after, p)
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

// hasMergeKeys reports whether the API server merges lists of this kind by key: it does for its own kinds.
func hasMergeKeys(object plan.Object) bool {
	switch object.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		return true
	default:
		return false
	}
}

func partOf(object plan.Object, p part) ([]byte, error) {
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
	case resize:
		fields = map[string]json.RawMessage{"spec": fields["spec"]}
	}
	if err := dropServerFields(fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// dropServerFields takes out of the metadata what only the server writes, so that it never shows as a difference.
func dropServerFields(fields map[string]json.RawMessage) error {
	raw, ok := fields["metadata"]
	if !ok {
		return nil
	}
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(raw, &metadata); err != nil {
		return fmt.Errorf("decoding metadata: %w", err)
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, field)
	}
	encoded, err := json.Marshal(metadata)
	fields["metadata"] = encoded
	return err
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
