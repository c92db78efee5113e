package podstate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// generatedWeight is the weight of the one preferred term that annotations can ask for.
const generatedWeight = 100

// Asked reports whether a workload says anything about a PersistentPodState of its own, be it that it wants none.
func Asked(annotations map[string]string) bool {
	_, says := annotations[keys.GeneratePodState]
	return says
}

// SameWishes reports whether the annotations of two versions of a workload ask for the same.
func SameWishes(a, b map[string]string) bool {
	return !slices.ContainsFunc(
		[]string{keys.GeneratePodState, keys.RequiredTopology, keys.PreferredTopology, keys.PersistentAnnotations},
		func(key string) bool {
			before, was := a[key]
			after, is := b[key]
			return was != is || before != after
		})
}

// Generate writes what the annotations of a workload ask for into a spec, and leaves what they can't say as it is. It returns false where
// they ask for none: for that, the first of them has to be "true" and a topology has to be named.
func Generate(annotations map[string]string, target v1beta1.PersistentPodStateTarget, into *v1beta1.PersistentPodStateSpec) bool {
	required, preferred := words(annotations[keys.RequiredTopology]), words(annotations[keys.PreferredTopology])
	if annotations[keys.GeneratePodState] != "true" || len(required)+len(preferred) == 0 {
		return false
	}
	into.TargetRef = target
	into.RequiredPersistentTopology, into.PreferredPersistentTopology, into.PersistentPodAnnotations = nil, nil, nil
	if len(required) > 0 {
		into.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: required}
	}
	if len(preferred) > 0 {
		into.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{
			{Weight: generatedWeight, Preference: v1beta1.NodeTopologyTerm{Keys: preferred}},
		}
	}
	for _, key := range words(annotations[keys.PersistentAnnotations]) {
		into.PersistentPodAnnotations = append(into.PersistentPodAnnotations, v1beta1.PersistentPodAnnotation{Key: key})
	}
	return true
}

// words returns what stands between the commas, without blanks, each once.
func words(list string) []string {
	var out []string
	for _, word := range strings.Split(list, ",") {
		if word = strings.TrimSpace(word); word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// ParseKinds reads the list of further kinds that a PersistentPodState may be for: {"workloads":[{"Group":"…","Version":"…","Kind":"…"}]}.
// An empty text names none.
func ParseKinds(text string) ([]schema.GroupKind, error) {
	var list struct {
		Workloads []schema.GroupVersionKind `json:"workloads"`
	}
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", keys.PodStateKinds, err)
	}
	out := make([]schema.GroupKind, 0, len(list.Workloads))
	for _, kind := range list.Workloads {
		out = append(out, kind.GroupKind())
	}
	return out, nil
}

// IsCloneSet reports whether a kind is CloneSet, whose Pods keep their names where it gives instance ids again.
func IsCloneSet(kind schema.GroupKind) bool {
	return kind.Kind == "CloneSet" && kind.Group == v1beta1.GroupVersion.Group
}

// IsStatefulSet reports whether a kind is one of the two of that name.
func IsStatefulSet(kind schema.GroupKind) bool {
	return kind.Kind == "StatefulSet" && (kind.Group == "apps" || kind.Group == v1beta1.GroupVersion.Group)
}
