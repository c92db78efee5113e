package spread

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// Adopt returns the subset that a Pod belongs to that runs on a node and was given to none; -1 if the node is in none of them. The node
// that a subset prefers counts most, then labels and annotations of its patch that the Pod has already, then room. The Pod was scheduled
// there: what it asks of nodes by itself, and which taints it tolerates, need not be asked again.
func Adopt(s *v1beta1.WorkloadSpread, rooms []int32, p *corev1.Pod, node *corev1.Node) int {
	best, most := -1, 0
	for i := range s.Spec.Subsets {
		of := &s.Spec.Subsets[i]
		if !requires(of.RequiredNodeSelector, node) {
			continue
		}
		score := 100 * preference(of.PreferredNodeSelector, node)
		if hasMetadata(p, of) {
			score += 10
		}
		if rooms[i] != 0 {
			score++
		}
		if best < 0 || score > most {
			best, most = i, score
		}
	}
	return best
}

func requires(term *corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if term == nil || len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*term}})
	return err == nil && selector.Match(node)
}

func preference(terms []corev1.PreferredSchedulingTerm, node *corev1.Node) int {
	preferred, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
	if err != nil {
		return 0 // one that can't be read prefers nothing
	}
	return int(preferred.Score(node))
}

// metadata returns the labels and annotations that the patch of a subset gives.
func metadata(of *v1beta1.WorkloadSpreadSubset) (labels, annotations map[string]string) {
	if of.Patch == nil {
		return nil, nil
	}
	var patch struct {
		Metadata struct{ Labels, Annotations map[string]*string }
	}
	if json.Unmarshal(of.Patch.Raw, &patch) != nil {
		return nil, nil
	}
	return values(patch.Metadata.Labels), values(patch.Metadata.Annotations)
}

// NamedAnnotations returns the keys of annotations that the patches of a WorkloadSpread's subsets give.
func NamedAnnotations(s *v1beta1.WorkloadSpread) []string {
	var out []string
	for i := range s.Spec.Subsets {
		_, annotations := metadata(&s.Spec.Subsets[i])
		out = slices.AppendSeq(out, maps.Keys(annotations))
	}
	return out
}

func values(of map[string]*string) map[string]string {
	out := map[string]string{}
	for key, value := range of {
		if value != nil {
			out[key] = *value
		}
	}
	return out
}

func hasMetadata(p *corev1.Pod, of *v1beta1.WorkloadSpreadSubset) bool {
	labels, annotations := metadata(of)
	return holds(p.Labels, labels) && holds(p.Annotations, annotations)
}

func holds(all, some map[string]string) bool {
	for key, value := range some {
		if has, ok := all[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// Join writes on a Pod that it belongs to a subset, and the labels and annotations of the subset's patch unless the WorkloadSpread says not
// to. Labels by which the workload tells its Pods stay as they are.
func Join(p *metav1.ObjectMeta, s *v1beta1.WorkloadSpread, subset int) {
	of := &s.Spec.Subsets[subset]
	if !strings.EqualFold(s.Annotations[keys.IgnorePatchExistingPodsMetadata], "true") {
		addMetadata(p, of)
	}
	metav1.SetMetaDataAnnotation(p, keys.MatchedWorkloadSpread, Matched{Name: s.Name, Subset: of.Name}.String())
}

// addMetadata writes the labels that a Pod does not have, and the annotations, of the patch of a subset.
func addMetadata(p *metav1.ObjectMeta, of *v1beta1.WorkloadSpreadSubset) {
	labels, annotations := metadata(of)
	for key, value := range labels {
		if _, has := p.Labels[key]; !has {
			metav1.SetMetaDataLabel(p, key, value)
		}
	}
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(p, key, value)
	}
}
