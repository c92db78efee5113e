package validating

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// StatefulSetOptions is what the validation of StatefulSets needs and heeds.
type StatefulSetOptions struct {
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
	// Live reads storage classes, where claims are to grow, and the StatefulSets of Kubernetes, where a new one might have the name of one.
	Live client.Reader
	// InPlace says which changes can go in place.
	InPlace inplace.Options
	// ClaimResize heeds volumeClaimUpdateStrategy (gate StatefulSetAutoResizePVCGate).
	ClaimResize bool
	// DeletionProtection heeds the label policy.kruise.io/delete-protection (gate ResourcesDeletionProtection).
	DeletionProtection bool
}

// StatefulSet returns the handler that validates StatefulSets of both versions, which have the same fields.
func StatefulSet(o StatefulSetOptions) admission.Handler {
	k := kind[v1beta1.StatefulSet, *v1beta1.StatefulSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.StatefulSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.StatefulSet]) (findings, error) {
			return statefulSetChange{o, w}.validate(ctx)
		},
	}
	if o.DeletionProtection {
		k.pods = func(set *v1beta1.StatefulSet) int32 { return replicasOf(set.Spec.Replicas) }
	}
	return k.handler()
}
