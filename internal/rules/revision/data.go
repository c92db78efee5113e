package revision

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Data returns the bytes of the revision of a template: a strategic merge patch that replaces the template, its keys sorted, without white
// space.
//
// Wire: the metadata of the template, and of the claim template of an ephemeral volume, hold "creationTimestamp":null where they hold none,
// which the Kubernetes types stopped writing in 1.34. Leaving it out would change the hash of every template there is.
func Data(template *corev1.PodTemplateSpec) ([]byte, error) {
	encoded, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	fields := map[string]any{}
	if err := decodeNumbers(encoded, &fields); err != nil {
		return nil, fmt.Errorf("decoding the template: %w", err)
	}
	nullCreationTimestamps(fields)
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// decodeNumbers decodes JSON without turning integers into floating point.
func decodeNumbers(data []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// nullCreationTimestamps fills in what is missing; a timestamp that a user pasted into a template along with the rest stays.
func nullCreationTimestamps(template map[string]any) {
	nullCreationTimestamp(template)
	spec, _ := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	NullCreationTimestamps(volumes)
}

// NullCreationTimestamps fills them in where they are missing in the claim templates of decoded volumes.
func NullCreationTimestamps(volumes []any) {
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		ephemeral, _ := volume["ephemeral"].(map[string]any)
		if claim, ok := ephemeral["volumeClaimTemplate"].(map[string]any); ok {
			nullCreationTimestamp(claim)
		}
	}
}

func nullCreationTimestamp(object map[string]any) {
	m, ok := object["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		object["metadata"] = m
	}
	if _, set := m["creationTimestamp"]; !set {
		m["creationTimestamp"] = nil
	}
}

// Hash returns the short hash of a revision's bytes at a collision count.
func Hash(data []byte, collisionCount int32) string {
	h := fnv.New32()
	_, _ = h.Write(data) // a hash does not fail
	_, _ = h.Write([]byte(strconv.Itoa(int(collisionCount))))
	return Encode(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// Encode maps each character to a letter or digit such that no word comes out.
func Encode(digits string) string {
	out := make([]byte, len(digits))
	for i := range len(digits) {
		out[i] = pod.Alphabet[int(digits[i])%len(pod.Alphabet)]
	}
	return string(out)
}

// ShortHash returns the hash at the end of a revision's name.
func ShortHash(revisionName string) string {
	return revisionName[strings.LastIndexByte(revisionName, '-')+1:]
}

// IsOf reports whether a Pod's revision label, which is a revision's name or only its hash, means the revision of that name.
func IsOf(podRevisionLabel, revisionName string) bool {
	return podRevisionLabel != "" && (podRevisionLabel == revisionName || ShortHash(podRevisionLabel) == ShortHash(revisionName))
}

// stored is the shape of a revision's bytes.
type stored struct {
	Spec struct {
		Template *corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// decode returns the template in a revision's bytes.
func decode(data []byte) (*corev1.PodTemplateSpec, error) {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decoding the template: %w", err)
	}
	if s.Spec.Template == nil {
		return nil, fmt.Errorf("decoding the template: there is none at spec.template")
	}
	return s.Spec.Template, nil
}

// sameJSON reports whether two texts hold the same JSON value.
func sameJSON(a, b []byte) bool {
	var left, right any
	return decodeNumbers(a, &left) == nil && decodeNumbers(b, &right) == nil && reflect.DeepEqual(left, right)
}
