package simulate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patch is a patch of an object or of one of its subresources.
type patch struct {
	subresource string
	kind        types.PatchType
	body        []byte
}

// applied returns the object with the patch, as far as the patch goes. It shares with the current one what the patch does not touch, which
// is most of an object: to encode and decode a whole one for each patch takes longer than all else in a simulation.
func applied(current client.Object, p patch) (client.Object, error) {
	switch p.kind {
	case types.StrategicMergePatchType:
		return p.merged(current, func(encoded, body []byte) ([]byte, error) {
			return strategicpatch.StrategicMergePatch(encoded, body, current)
		})
	case types.MergePatchType:
		return p.merged(current, jsonpatch.MergePatch)
	case types.JSONPatchType:
		return p.operated(current)
	default:
		return nil, fmt.Errorf("patches of type %s are not supported", p.kind)
	}
}

// identity is the metadata of a patch that says which object it is for. Almost every patch has it, and many have no other metadata.
type identity struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// merged returns the object with a patch that says what fields are to be.
func (p patch) merged(current client.Object, merge func(encoded, body []byte) ([]byte, error)) (client.Object, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(p.body, &fields); err != nil {
		return nil, fmt.Errorf("decoding a patch: %w", err)
	}
	if untyped, is := current.(*unstructured.Unstructured); is {
		return p.mergedWhole(untyped, merge)
	}
	wanted := shallow(current)
	if metadata, ok := fields["metadata"]; ok && isIdentity(metadata) {
		is := identity{wanted.GetUID(), wanted.GetResourceVersion()}
		if err := json.Unmarshal(metadata, &is); err != nil {
			return nil, fmt.Errorf("decoding a patch: %w", err)
		}
		wanted.SetUID(is.UID)
		wanted.SetResourceVersion(is.ResourceVersion)
		delete(fields, "metadata")
	}
	touched := map[string]bool{}
	for field := range fields {
		touched[field] = true
	}
	encoded, err := takeOut(wanted, touched)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch again: %w", err)
	}
	patched, err := merge(encoded, body)
	return wanted, putBack(wanted, patched, err)
}

// mergedWhole is merged for an object that shares nothing.
func (p patch) mergedWhole(current *unstructured.Unstructured, merge func(encoded, body []byte) ([]byte, error)) (client.Object, error) {
	encoded, err := current.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", current.GetKind(), err)
	}
	patched, err := merge(encoded, p.body)
	if err != nil {
		return nil, fmt.Errorf("patching: %w", err)
	}
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(patched); err != nil {
		return nil, fmt.Errorf("decoding the patched %s: %w", current.GetKind(), err)
	}
	return wanted, nil
}

// isIdentity reports whether metadata has no more fields than an identity.
func isIdentity(metadata json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(metadata, &fields) != nil {
		return false
	}
	for field, value := range fields {
		if field != "uid" && field != "resourceVersion" || string(value) == "null" {
			return false
		}
	}
	return true
}

// operated returns the object with a patch that lists operations.
func (p patch) operated(current client.Object) (client.Object, error) {
	operations, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, fmt.Errorf("decoding a patch: %w", err)
	}
	touched := map[string]bool{}
	wanted := shallow(current)
	rest := operations[:0]
	for _, o := range operations {
		if isOf(o, current.GetUID()) {
			continue
		}
		rest = append(rest, o)
		for _, name := range []string{"path", "from"} {
			var path string
			if encoded := o[name]; encoded != nil && json.Unmarshal(*encoded, &path) == nil {
				field, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
				touched[field] = true
			}
		}
	}
	encoded, err := takeOut(wanted, touched)
	if err != nil {
		return nil, err
	}
	patched, err := rest.Apply(encoded)
	return wanted, putBack(wanted, patched, err)
}

// isOf reports whether an operation tests that the object has a UID that it does have.
func isOf(o jsonpatch.Operation, uid types.UID) bool {
	path, err := o.Path()
	if err != nil || o.Kind() != "test" || path != "/metadata/uid" {
		return false
	}
	wanted, err := o.ValueInterface()
	return err == nil && wanted == string(uid)
}

// takeOut empties fields at the top of an object and returns what was in them as a JSON object.
func takeOut(object client.Object, names map[string]bool) ([]byte, error) {
	fields := map[string]any{}
	value := reflect.ValueOf(object).Elem()
	for i := range value.NumField() {
		name, options, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || !names[name] {
			continue
		}
		field := value.Field(i)
		if field.Kind() == reflect.Struct || !field.IsZero() || !strings.Contains(options, "omitempty") {
			fields[name] = field.Interface()
		}
		field.SetZero()
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	return encoded, nil
}

// putBack decodes what takeOut has taken out, with a patch; err is that of patching.
func putBack(object client.Object, patched []byte, err error) error {
	if err != nil {
		return fmt.Errorf("patching: %w", err)
	}
	if err := json.Unmarshal(patched, object); err != nil {
		return fmt.Errorf("decoding the patched %T: %w", object, err)
	}
	return nil
}
