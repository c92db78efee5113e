package spread

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// Given is what a new Pod is given.
type Given struct {
	// Subset is the place of the subset; -1 if none has room.
	Subset int
	// Entry is the entry of the ledger that stands for the Pod until it is seen; empty if it needs not be counted.
	Entry string
	// Cost is its deletion cost; 0 where the workload heeds none.
	Cost int32
}

// Inject makes a new Pod one of a subset: its tolerations, what it asks of nodes, the patch, the deletion cost,
// and last the annotation. An error means that the patch does not fit the Pod, which is left half done.
func Inject(p *corev1.Pod, s *v1beta1.WorkloadSpread, given Given) error {
	of := &s.Spec.Subsets[given.Subset]
	addPlacement(&p.Spec, of)
	if of.Patch != nil && len(of.Patch.Raw) > 0 {
		priority := p.Spec.PriorityClassName
		patched, err := Patched(p, of.Patch.Raw)
		if err != nil {
			return fmt.Errorf("applying the patch of subset %s of WorkloadSpread %s: %w", of.Name, s.Name, err)
		}
		// Those who sent the Pod decide on these.
		patched.Name, patched.GenerateName, patched.Namespace = p.Name, p.GenerateName, p.Namespace
		patched.OwnerReferences = p.OwnerReferences
		if patched.Spec.PriorityClassName != priority {
			// They follow from the class, which the API server resolves again.
			patched.Spec.Priority, patched.Spec.PreemptionPolicy = nil, nil
		}
		*p = *patched
	}
	mark(p, s, given)
	return nil
}

// mark writes on a Pod what it was given.
func mark(p *corev1.Pod, s *v1beta1.WorkloadSpread, given Given) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	if given.Cost != 0 {
		p.Annotations[corev1.PodDeletionCost] = strconv.Itoa(int(given.Cost))
	}
	p.Annotations[keys.MatchedWorkloadSpread] = Matched{s.Name, s.Spec.Subsets[given.Subset].Name, given.Entry}.String()
}

// Patched returns a Pod with a strategic merge patch applied.
func Patched(p *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	original, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	out := &corev1.Pod{}
	return out, json.Unmarshal(merged, out)
}

// addPlacement adds the tolerations of a subset, and what it asks of nodes: to each of the terms of which a Pod requires one.
func addPlacement(p *corev1.PodSpec, of *v1beta1.WorkloadSpreadSubset) {
	p.Tolerations = append(p.Tolerations, of.Tolerations...)
	required := of.RequiredNodeSelector
	if required != nil && len(required.MatchExpressions)+len(required.MatchFields) == 0 {
		required = nil // it would match no node
	}
	if required == nil && len(of.PreferredNodeSelector) == 0 {
		return
	}
	if p.Affinity == nil {
		p.Affinity = &corev1.Affinity{}
	}
	if p.Affinity.NodeAffinity == nil {
		p.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	nodes := p.Affinity.NodeAffinity
	nodes.PreferredDuringSchedulingIgnoredDuringExecution = append(nodes.PreferredDuringSchedulingIgnoredDuringExecution,
		of.PreferredNodeSelector...)
	if required == nil {
		return
	}
	if nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	terms := nodes.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms.NodeSelectorTerms) == 0 {
		terms.NodeSelectorTerms = []corev1.NodeSelectorTerm{*required.DeepCopy()}
		return
	}
	for i := range terms.NodeSelectorTerms {
		term := &terms.NodeSelectorTerms[i]
		term.MatchExpressions = append(slices.Clip(term.MatchExpressions), required.MatchExpressions...)
		term.MatchFields = append(slices.Clip(term.MatchFields), required.MatchFields...)
	}
}
