package scope

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// SpreadInterest is in the Pods of a workload, as far as these tell whose they are.
type SpreadInterest struct {
	namespace, kind, name string
	// prefix means that name is how the names of their controllers begin.
	prefix bool
	// any means that their controllers are of a kind that is not known.
	any bool
}

// OfWorkloadSpread returns the interest of a WorkloadSpread; ok is false if it has none, because it is on its way out.
func OfWorkloadSpread(s *v1beta1.WorkloadSpread) (interest SpreadInterest, ok bool) {
	t := s.Spec.TargetReference
	if s.DeletionTimestamp != nil || t == nil {
		return SpreadInterest{}, false
	}
	return OfTarget(s.Namespace, t), true
}

// OfTarget returns the interest in the Pods of a workload.
func OfTarget(namespace string, t *v1beta1.SpreadTargetReference) SpreadInterest {
	out := SpreadInterest{namespace: namespace, kind: t.Kind, name: t.Name}
	switch schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind().String() {
	case "Deployment.apps":
		out.kind, out.name, out.prefix = "ReplicaSet", t.Name+"-", true
	case "ReplicaSet.apps", "StatefulSet.apps", "Job.batch", "CloneSet.apps.kruise.io", "StatefulSet.apps.kruise.io":
	default: // Pods may be of something that it makes
		out.any = true
	}
	return out
}

// SpreadExpression returns a CEL expression that is true of every Pod that one of the interests is in, of which it may be true of more if
// that would take more than maxExpression bytes; "" if there are no interests.
//
// Deployment web of namespace shop becomes
//
//	has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && (
//	request.namespace == "shop" && o.kind == "ReplicaSet" && o.name.startsWith("web-")))
func SpreadExpression(interests []SpreadInterest) string {
	if len(interests) == 0 {
		return ""
	}
	for _, term := range []func(SpreadInterest) string{SpreadInterest.exact, SpreadInterest.inNamespace} {
		terms := map[string]bool{}
		for _, i := range interests {
			terms[term(i)] = true
		}
		if out := controlled(strings.Join(slices.Sorted(maps.Keys(terms)), " ||\n")); len(out) <= maxExpression {
			return out
		}
	}
	return controlled("true")
}

func controlled(by string) string {
	return "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && (\n" +
		by + "))"
}

func (i SpreadInterest) inNamespace() string { return "request.namespace == " + quote(i.namespace) }

func (i SpreadInterest) exact() string {
	switch {
	case i.any:
		return i.inNamespace()
	case i.prefix:
		return i.inNamespace() + " && o.kind == " + quote(i.kind) + " && o.name.startsWith(" + quote(i.name) + ")"
	default:
		return i.inNamespace() + " && o.kind == " + quote(i.kind) + " && o.name == " + quote(i.name)
	}
}
