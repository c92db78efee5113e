package validating

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// SidecarSetOptions is what the validation of SidecarSets needs and heeds.
type SidecarSetOptions struct {
	// Live reads the other SidecarSets, revisions, and what annotations are allowed, from the API server rather than from a cache.
	Live client.Reader
	// Namespace is where revisions of SidecarSets and the configuration are kept.
	Namespace string
	// Templates judges containers and volumes as a Pod template; without it they are not looked into.
	Templates TemplateChecker
	// AnyAnnotation lets SidecarSets write every annotation that no rule of the configuration speaks of (gate
	// SidecarSetPatchPodMetadataDefaultsAllowed).
	AnyAnnotation bool
	// Accepted is told of each SidecarSet that is about to be stored with another spec, which is refused if it fails. It may be nil.
	Accepted OnAccept
}

// OnAccept is told of a SidecarSet that is about to be stored, and of the one that it replaces, nil if there is none.
type OnAccept func(ctx context.Context, before, after *v1beta1.SidecarSet) error

// SidecarSet returns the handler that validates of SidecarSets of both versions what their schemas can't.
func SidecarSet(o SidecarSetOptions) admission.Handler {
	return kind[v1beta1.SidecarSet, *v1beta1.SidecarSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.SidecarSet) any { return []any{set.Spec, canaryOf(set)} },
		validate: func(ctx context.Context, w write[v1beta1.SidecarSet]) (findings, error) {
			c := sidecarSetChange{o, w}
			found, err := c.validate(ctx)
			if err != nil || len(found.errors) > 0 {
				return found, err
			}
			found.warnings = append(found.warnings, c.warnings()...)
			if o.Accepted != nil && !w.dryRun {
				err = o.Accepted(ctx, w.old, w.new)
			}
			return found, err
		},
		ineffective: sidecarSetSpelling,
		olderNames:  sidecarSetOlderNames,
	}.handler()
}

// olderSidecarSet returns the object as the user wrote it in v1alpha1; nil if it was written in v1beta1.
func olderSidecarSet(w write[v1beta1.SidecarSet]) *v1alpha1.SidecarSet {
	if !w.older {
		return nil
	}
	older, err := request.Decode[v1alpha1.SidecarSet](&unstructured.Unstructured{Object: w.written})
	if err != nil {
		return nil // it has been converted, and so can be read
	}
	return older
}

func sidecarSetOlderNames(w write[v1beta1.SidecarSet]) []olderName {
	names := []olderName{{"spec.customVersion", "metadata.labels"}}
	if older := olderSidecarSet(w); older != nil && older.Spec.Namespace != "" && older.Spec.NamespaceSelector == nil {
		names = append(names, olderName{"spec.namespaceSelector.matchLabels", "spec.namespace"}, olderName{"spec.namespaceSelector", "spec.namespace"})
	}
	return names
}

// sidecarSetSpelling tells of the fields of the first releases, and of which value counts where both spellings differ.
func sidecarSetSpelling(w write[v1beta1.SidecarSet]) []string {
	older := olderSidecarSet(w)
	if older == nil {
		return nil
	}
	var out []string
	spec := &older.Spec
	if spec.Strategy != nil {
		out = append(out, "spec.strategy is deprecated, use spec.updateStrategy.maxUnavailable")
		first, now := defaults.FirstMaxUnavailable(older), spec.UpdateStrategy.MaxUnavailable
		if first != nil && now != nil && *first != *now {
			out = append(out, fmt.Sprintf("spec.strategy.rollingUpdate.maxUnavailable %s has no effect: spec.updateStrategy.maxUnavailable %s is used", first, now))
		}
	}
	if spec.Paused != nil {
		out = append(out, "spec.paused is deprecated, use spec.updateStrategy.paused")
		if *spec.Paused != spec.UpdateStrategy.Paused {
			out = append(out, fmt.Sprintf("spec.paused %t has no effect: spec.updateStrategy.paused %t is used", *spec.Paused, spec.UpdateStrategy.Paused))
		}
	}
	return out
}
