package validating

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TrafficRouting returns the handler that validates of TrafficRoutings what their schema can't: what the ways of leading traffic can say.
func TrafficRouting() admission.Handler {
	return kind[v1alpha1.TrafficRouting, *v1alpha1.TrafficRouting]{
		hub:      v1alpha1.GroupVersion,
		subject:  func(t *v1alpha1.TrafficRouting) any { return t.Spec },
		validate: rules[v1alpha1.TrafficRouting](trafficRoutingRules).validate,
	}.handler()
}

func trafficRoutingRules(found *findings, t *v1alpha1.TrafficRouting) {
	spec := field.NewPath("spec")
	var matches []v1beta1.HTTPRouteMatch
	for _, match := range t.Spec.Strategy.Matches {
		matches = append(matches, v1beta1.HTTPRouteMatch{Headers: match.Headers})
	}
	for i := range matches {
		if len(matches[i].Headers) == 0 {
			found.required(spec.Child("strategy", "matches").Index(i).Child("headers"), "an empty match is every request")
		}
	}
	found.distinct(spec.Child("objectRef"), t.Spec.ObjectRef)
	for i := range t.Spec.ObjectRef {
		ref, at := &t.Spec.ObjectRef[i], spec.Child("objectRef").Index(i)
		if ref.Ingress != nil && found.class(at.Child("ingress", "classType"), ref.Ingress.ClassType) {
			found.onHeader(spec.Child("strategy", "matches"), matches)
		}
		if ref.Gateway != nil && t.Spec.Strategy.Weight != nil {
			found.forbidden(spec.Child("strategy", "weight"),
				"both versions have one Service, so a weight leads nowhere else in a route of Gateway API: use matches")
		}
	}
}
