package validating

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
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

// SidecarSet returns the handler that validates SidecarSets of both versions.
func SidecarSet(o SidecarSetOptions) admission.Handler {
	return onWritten(o.written)
}

func (o SidecarSetOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	now, err := decodeSidecarSet(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	c := sidecarSetChange{SidecarSetOptions: o, new: now.hub, raw: now.spec}
	if asked.Operation == admissionv1.Update {
		before, err := decodeSidecarSet(asked.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		if now.hub.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.hub.Spec, before.hub.Spec) && canaryOf(now.hub) == canaryOf(before.hub) {
			return admission.Allowed("").WithWarnings(now.spellingWarnings()...)
		}
		c.old = before.hub
	}
	found, err := c.validate(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(found.errors) > 0 {
		return invalid(asked, now.userErrors(found.errors)).WithWarnings(found.warnings...)
	}
	if dryRun := asked.DryRun != nil && *asked.DryRun; o.Accepted != nil && !dryRun {
		if err := o.Accepted(ctx, c.old, c.new); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
	}
	return admission.Allowed("").WithWarnings(slices.Concat(found.warnings, c.warnings(), now.spellingWarnings())...)
}

// decodedSidecarSet is an object of a request.
type decodedSidecarSet struct {
	// hub is what it means.
	hub *v1beta1.SidecarSet
	// older is the object as written in v1alpha1; nil if it was written in v1beta1.
	older *v1alpha1.SidecarSet
	// spec is the spec as it came, with all that this build does not know.
	spec map[string]any
}

func decodeSidecarSet(from runtime.RawExtension) (*decodedSidecarSet, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, err
	}
	out := &decodedSidecarSet{}
	out.spec, _ = u.Object["spec"].(map[string]any)
	out.hub, out.older, err = meaning(u, convert.SidecarSetToHub)
	return out, err
}

// userErrors names fields as the user's version does.
func (d *decodedSidecarSet) userErrors(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		switch {
		case d.older == nil:
		case d.older.Spec.Namespace != "" && d.older.Spec.NamespaceSelector == nil && strings.HasPrefix(err.Field, "spec.namespaceSelector"):
			err.Field = "spec.namespace"
		case err.Field == "spec.customVersion":
			err.Field = "metadata.labels"
		}
	}
	return errs
}

// spellingWarnings tells of the fields of the first releases, and of which value counts where both spellings differ.
func (d *decodedSidecarSet) spellingWarnings() []string {
	if d.older == nil {
		return nil
	}
	var out []string
	spec := &d.older.Spec
	if spec.Strategy != nil {
		out = append(out, "spec.strategy is deprecated, use spec.updateStrategy.maxUnavailable")
		first, now := defaults.FirstMaxUnavailable(d.older), spec.UpdateStrategy.MaxUnavailable
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
