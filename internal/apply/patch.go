package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// diff returns the patch from before to after within a part of the object, with the condition in it; nil when they do not differ.
func diff(before, after plan.Object, p part, condition precondition) (types.PatchType, []byte, error) {
	was, err := partOf(before, p)
	if err != nil {
		return "", nil, err
	}
	is, err := partOf(after, p)
	if err != nil {
		return "", nil, err
	}
	// What they have in common is left out: comparing a whole Pod takes time, and a strategic patch would give the order of finalizers that
	// do not change, so that it is never empty.
	for name := range was {
		dropEqual(was[name], is[name])
	}
	patchType, between := types.MergePatchType, mergePatch
	if hasMergeKeys(after) {
		patchType, between = types.StrategicMergePatchType, func(from, to map[string]any) (map[string]any, error) {
			meta, err := strategicpatch.NewPatchMetaFromStruct(after)
			if err != nil {
				return nil, err
			}
			return strategicpatch.CreateTwoWayMergeMapPatchUsingLookupPatchMeta(from, to, meta)
		}
	}
	from, err := was.decode()
	if err != nil {
		return "", nil, err
	}
	to, err := is.decode()
	if err != nil {
		return "", nil, err
	}
	patch, err := between(from, to)
	if err != nil {
		return "", nil, fmt.Errorf("comparing: %w", err)
	}
	if len(patch) == 0 {
		return patchType, nil, nil
	}
	encoded, err := withCondition(patch, condition)
	return patchType, encoded, err
}

// mergePatch returns the JSON merge patch between two objects.
func mergePatch(from, to map[string]any) (patch map[string]any, err error) {
	was, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	encoded, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, err
	}
	return patch, utiljson.Unmarshal(encoded, &patch)
}

// encodedPart is what a write covers of an object: the fields of each of its structs, such as its metadata, and under "" its fields that
// are no structs.
type encodedPart map[string]map[string]json.RawMessage

// partOf returns the part of an object, without what only the server writes.
func partOf(object plan.Object, p part) (encodedPart, error) {
	out := encodedPart{"": {}}
	if untyped, is := object.(*unstructured.Unstructured); is {
		return out, out.encode(untyped.Object, p)
	}
	whole := reflect.ValueOf(object).Elem()
	for i := range whole.NumField() {
		name, options, _ := strings.Cut(whole.Type().Field(i).Tag.Get("json"), ",")
		if !p.covers(name) {
			continue
		}
		var err error
		switch field := whole.Field(i); {
		case field.Kind() == reflect.Struct && !field.Type().Implements(reflect.TypeFor[json.Marshaler]()):
			if out[name] == nil {
				out[name] = map[string]json.RawMessage{}
			}
			err = encodeFields(field, out[name])
		case !isOmitted(field, options):
			out[""][name], err = json.Marshal(field.Interface())
		}
		if err != nil {
			return nil, fmt.Errorf("encoding %s of %T: %w", name, object, err)
		}
	}
	out.dropServerFields()
	return out, nil
}

// encode adds a part of an object of a kind that is not known as a type.
func (e encodedPart) encode(object map[string]any, p part) error {
	e["metadata"] = map[string]json.RawMessage{}
	metadata, _ := object["metadata"].(map[string]any)
	for into, fields := range map[string]map[string]any{"": object, "metadata": metadata} {
		for name, value := range fields {
			if into == "" && (name == "metadata" || !p.covers(name)) {
				continue
			}
			encoded, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("encoding %s: %w", name, err)
			}
			e[into][name] = encoded
		}
	}
	e.dropServerFields()
	return nil
}

// dropServerFields takes out what only the server writes.
func (e encodedPart) dropServerFields() {
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(e["metadata"], field)
	}
}

// covers reports whether a field at the top of an object belongs to the part.
func (p part) covers(field string) bool {
	switch p {
	case main:
		return field != "status"
	case status:
		return field != "spec"
	default:
		return field == "spec"
	}
}

// encodeFields encodes the fields of a struct, each for itself and under its name: to decode what was encoded as a whole, only to find them
// again, takes longer than all else about a write.
func encodeFields(of reflect.Value, into map[string]json.RawMessage) error {
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		field := of.Field(i)
		if name == "" {
			if err := encodeFields(field, into); err != nil {
				return err
			}
			continue
		}
		if isOmitted(field, options) {
			continue
		}
		encoded, err := json.Marshal(field.Interface())
		if err != nil {
			return err
		}
		into[name] = encoded
	}
	return nil
}

// isOmitted reports whether a field is left out of JSON by the options of its tag.
func isOmitted(field reflect.Value, options string) bool {
	switch field.Kind() {
	case reflect.Slice, reflect.Map:
		return strings.Contains(options, "omitempty") && field.Len() == 0
	case reflect.Struct:
		return strings.Contains(options, "omitzero") && field.IsZero()
	default:
		return strings.Contains(options, "omit") && field.IsZero()
	}
}

// decode returns the part as an object. Structs are there also when nothing is left of them: one that is missing on one side only would be
// patched away as a whole.
func (e encodedPart) decode() (map[string]any, error) {
	out := map[string]any{}
	for name, fields := range e {
		into := out
		if name != "" {
			into = make(map[string]any, len(fields))
			out[name] = into
		}
		for field, encoded := range fields {
			var value any
			if err := utiljson.Unmarshal(encoded, &value); err != nil {
				return nil, fmt.Errorf("decoding %s again: %w", field, err)
			}
			into[field] = value
		}
	}
	return out, nil
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

func withCondition(patch map[string]any, c precondition) ([]byte, error) {
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"] = c.uid
	if c.resourceVersion != "" {
		metadata["resourceVersion"] = c.resourceVersion
	}
	return json.Marshal(patch)
}
