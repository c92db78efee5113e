package validating

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// CloneSetOptions is what the validation of CloneSets needs and heeds.
type CloneSetOptions struct {
	// Pods reads Pods, from the API server rather than from a cache: a Pod that was just created must be found.
	Pods client.Reader
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
	// InPlace says which changes can go in place.
	InPlace inplace.Options
	// DeletionProtection heeds the label policy.kruise.io/delete-protection (gate ResourcesDeletionProtection).
	DeletionProtection bool
	// ShortHash keeps the name of the CloneSet out of label values, so that it may be long (gate CloneSetShortHash).
	ShortHash bool
}

// CloneSet returns the handler that validates CloneSets of both versions.
func CloneSet(o CloneSetOptions) admission.Handler {
	k := kind[v1beta1.CloneSet, *v1beta1.CloneSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.CloneSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.CloneSet]) (findings, error) {
			return cloneSetChange{o, w}.validate(ctx)
		},
		ineffective: cloneSetSpelling,
		olderNames: func(write[v1beta1.CloneSet]) []olderName {
			return []olderName{{"spec.updateStrategy.rollingUpdate", "spec.updateStrategy"}}
		},
	}
	if o.DeletionProtection {
		k.pods = func(set *v1beta1.CloneSet) int32 { return replicasOf(set.Spec.Replicas) }
	}
	return k.handler()
}
