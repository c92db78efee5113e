package claim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/dump"
)

// TemplatesHash returns the hash that tells whether claim templates have changed: of their names and specs, in the order of names. No
// templates give an empty text.
//
// Wire: it is stored with every revision, as the decimal FNV-1a hash of a dump of JSON that holds a null creation timestamp and an empty
// status, which the Kubernetes types wrote at the time.
func TemplatesHash(templates []corev1.PersistentVolumeClaim) string {
	if len(templates) == 0 {
		return ""
	}
	type hashed struct {
		Metadata struct {
			Name              string       `json:"name,omitempty"`
			CreationTimestamp *metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Spec   corev1.PersistentVolumeClaimSpec `json:"spec"`
		Status struct{}                         `json:"status"`
	}
	var all []hashed
	for i := range templates {
		var h hashed
		h.Metadata.Name, h.Spec = templates[i].Name, templates[i].Spec
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b hashed) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	encoded, err := json.Marshal(all)
	if err != nil {
		// The types have no value that can't be encoded.
		return ""
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%v", dump.ForHash(encoded)) // a hash does not fail
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}

// EncodeTemplates returns claim templates as text, to be stored with a revision.
func EncodeTemplates(templates []corev1.PersistentVolumeClaim) (string, error) {
	encoded, err := json.Marshal(templates)
	return string(encoded), err
}

// DecodeTemplates reads what EncodeTemplates wrote.
func DecodeTemplates(text string) ([]corev1.PersistentVolumeClaim, error) {
	var templates []corev1.PersistentVolumeClaim
	if err := json.Unmarshal([]byte(text), &templates); err != nil {
		return nil, fmt.Errorf("decoding claim templates: %w", err)
	}
	return templates, nil
}
