// Package revision keeps a workload's history of templates as ControllerRevisions.
//
// A revision's name ends in a hash of its bytes, and Pods carry that name as a label, so the bytes are a contract: if the same template
// gave other bytes after an upgrade, every Pod would look outdated. Data therefore writes the bytes that clusters already store, whatever
// the Kubernetes libraries of the day would write.
package revision

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// maxOwnerName leaves room for a dash and a hash in the 253 characters of an object's name, and some to spare.
const maxOwnerName = 223

// lastApplied is what kubectl apply notes on the workload: large, and of no meaning on a revision.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Owner is what a new revision takes from its workload.
type Owner struct {
	Name, Namespace string
	Reference       metav1.OwnerReference
	// Annotations of the workload are copied, but for what kubectl notes there for itself.
	Annotations map[string]string
	// Labels are copied, too.
	Labels map[string]string
}

// OwnerOf returns what a workload gives its revisions.
func OwnerOf(workload metav1.Object, kind schema.GroupVersionKind) Owner {
	return Owner{
		Name: workload.GetName(), Namespace: workload.GetNamespace(), Annotations: workload.GetAnnotations(),
		Reference: *metav1.NewControllerRef(workload, kind),
	}
}

// New returns the revision of a template, with no number yet.
func New(owner Owner, template *corev1.PodTemplateSpec, collisionCount int32) (*appsv1.ControllerRevision, error) {
	data, err := Data(template)
	if err != nil {
		return nil, fmt.Errorf("making the revision of the template: %w", err)
	}
	owner.Labels = template.Labels
	return Of(owner, data, collisionCount), nil
}

// Of returns the revision that holds data, with no number yet.
func Of(owner Owner, data []byte, collisionCount int32) *appsv1.ControllerRevision {
	hash := Hash(data, collisionCount)
	rev := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            owner.Name[:min(len(owner.Name), maxOwnerName)] + "-" + hash,
			Namespace:       owner.Namespace,
			Labels:          map[string]string{},
			Annotations:     map[string]string{},
			OwnerReferences: []metav1.OwnerReference{owner.Reference},
		},
		Data: runtime.RawExtension{Raw: data},
	}
	maps.Copy(rev.Labels, owner.Labels)
	rev.Labels[keys.RevisionHash] = hash
	maps.Copy(rev.Annotations, owner.Annotations)
	delete(rev.Annotations, lastApplied)
	return rev
}

// Template returns the template that a revision holds.
func Template(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	template, err := decode(rev.Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", rev.Name, err)
	}
	return template, nil
}

// Sort orders revisions by number, then age, then name, the oldest first.
func Sort(history []*appsv1.ControllerRevision) {
	slices.SortStableFunc(history, compare)
}

func compare(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(
		cmp.Compare(a.Revision, b.Revision),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// Verb says what has to be written so that the update revision is stored.
type Verb string

const (
	// Reuse means that the newest stored revision is the one wanted.
	Reuse Verb = "reuse"
	// Raise means that an older revision is wanted again: it keeps its name and gets the next number.
	Raise Verb = "raise"
	// Create means that the template is new.
	Create Verb = "create"
)

// Resolution is the revision that a workload wants, as it is to be stored.
type Resolution struct {
	Update *appsv1.ControllerRevision
	Verb   Verb
}

// Same reports whether two templates, which may be changed, mean the same.
type Same func(a, b *corev1.PodTemplateSpec) bool

// Resolve looks for a candidate among the stored revisions. Neither is changed.
func Resolve(history []*appsv1.ControllerRevision, candidate *appsv1.ControllerRevision) Resolution {
	return resolve(history, candidate, nil)
}

func resolve(history []*appsv1.ControllerRevision, candidate *appsv1.ControllerRevision, same Same) Resolution {
	sorted := slices.Clone(history)
	Sort(sorted)
	next := int64(1)
	if len(sorted) > 0 {
		next = sorted[len(sorted)-1].Revision + 1
	}
	for i := len(sorted) - 1; i >= 0; i-- {
		switch {
		case !equal(sorted[i], candidate, same):
		case i == len(sorted)-1:
			return Resolution{Update: sorted[i], Verb: Reuse}
		default:
			raised := sorted[i].DeepCopy()
			raised.Revision = next
			return Resolution{Update: raised, Verb: Raise}
		}
	}
	created := candidate.DeepCopy()
	created.Revision = next
	return Resolution{Update: created, Verb: Create}
}

// equal reports whether two revisions hold the same template: the same bytes, or bytes that mean the same. A nil same asks for equal
// templates.
func equal(a, b *appsv1.ControllerRevision, same Same) bool {
	if bytes.Equal(a.Data.Raw, b.Data.Raw) {
		return true
	}
	if same, are := sameSubsets(a.Data.Raw, b.Data.Raw); are {
		return same
	}
	left, err := decode(a.Data.Raw)
	if err != nil {
		return sameJSON(a.Data.Raw, b.Data.Raw) // such as the revision of a SidecarSet
	}
	right, err := decode(b.Data.Raw)
	if err != nil {
		return false
	}
	return equality.Semantic.DeepEqual(left, right) || same != nil && same(left, right)
}

// Collides reports whether another template has the candidate's name, so that it needs a higher collision count.
func Collides(history []*appsv1.ControllerRevision, candidate *appsv1.ControllerRevision) bool {
	return slices.ContainsFunc(history, func(rev *appsv1.ControllerRevision) bool {
		return rev.Name == candidate.Name && !equal(rev, candidate, nil)
	})
}

// Stale returns the revisions beyond the limit that are not live, the oldest first.
func Stale(history []*appsv1.ControllerRevision, live func(*appsv1.ControllerRevision) bool, limit int32) []*appsv1.ControllerRevision {
	unused := slices.DeleteFunc(slices.Clone(history), live)
	Sort(unused)
	return unused[:max(0, len(unused)-int(max(limit, 0)))]
}

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
