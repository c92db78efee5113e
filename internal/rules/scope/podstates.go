package scope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// OfPodStates returns an expression that selects the new Pods of the workloads that PersistentPodStates are for; empty if there are none.
// Where it would grow too long, it selects the Pods of all workloads of these kinds.
func OfPodStates(states []*v1beta1.PersistentPodState) string {
	var targets, kinds []string
	for _, state := range states {
		if state.DeletionTimestamp != nil {
			continue
		}
		ref := state.Spec.TargetRef
		group, _, hasGroup := strings.Cut(ref.APIVersion, "/")
		if !hasGroup {
			group = ""
		}
		kinds = append(kinds, group+"/"+ref.Kind)
		targets = append(targets, state.Namespace+"/"+group+"/"+ref.Kind+"/"+ref.Name)
	}
	if len(targets) == 0 {
		return ""
	}
	const controlled = "has(object.metadata.ownerReferences) && " +
		"object.metadata.ownerReferences.exists(r, has(r.controller) && r.controller && "
	const kind = "(r.apiVersion.contains('/') ? r.apiVersion.split('/')[0] : '') + '/' + r.kind"
	exact := controlled + "(request.namespace + '/' + " + kind + " + '/' + r.name) in " + listed(targets) + ")"
	if len(exact) <= maxExpression {
		return exact
	}
	return controlled + "(" + kind + ") in " + listed(kinds) + ")"
}

// listed writes texts as a list of CEL, sorted, each once. Texts are names and kinds, which have no quotes.
func listed(texts []string) string {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
