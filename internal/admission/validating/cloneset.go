package validating

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
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
func CloneSet(o CloneSetOptions) admission.Handler { return handler(o) }

func (o CloneSetOptions) protects() bool { return o.DeletionProtection }

func (o CloneSetOptions) doomed(object runtime.RawExtension) (labels map[string]string, pods int32, err error) {
	set, err := decode(object)
	if err != nil {
		return nil, 0, err
	}
	return set.hub.Labels, replicasOf(set.hub.Spec.Replicas), nil
}

func (o CloneSetOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	now, err := decode(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	if now.hub.Namespace == "" {
		now.hub.Namespace = asked.Namespace
	}
	var before *decoded
	if asked.Operation == admissionv1.Update {
		if before, err = decode(asked.OldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		// What is on its way out rolls nothing out any more, and its finalizers must come off. What was stored before a rule was
		// made can still be labelled and annotated.
		if now.hub.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.hub.Spec, before.hub.Spec) && now.typeErrors == nil {
			return admission.Allowed("").WithWarnings(now.spellingWarnings()...)
		}
	}
	change := change{CloneSetOptions: o, new: now.hub, rawTemplate: now.template}
	if before != nil {
		change.old = before.hub
	}
	found, err := change.validate(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	found.errors = append(now.typeErrors, found.errors...)
	if len(found.errors) > 0 {
		return invalid(asked, now.userErrors(found.errors)).WithWarnings(found.warnings...)
	}
	warnings := slices.Concat(found.warnings, change.warnings(), now.spellingWarnings())
	return admission.Allowed("").WithWarnings(warnings...)
}

// decoded is an object of a request.
type decoded struct {
	// hub is what it means.
	hub *v1beta1.CloneSet
	// older is how the user wrote it, if in v1alpha1.
	older *v1alpha1.CloneSet
	// template is the template as it came, with all that this build does not know.
	template map[string]any
	// typeErrors is what conversion can't carry over.
	typeErrors field.ErrorList
}

func decode(from runtime.RawExtension) (*decoded, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, err
	}
	out := &decoded{}
	out.template, _, _ = unstructured.NestedMap(u.Object, "spec", "template")
	if out.hub, out.older, err = meaning(u, convert.CloneSetToHub); err != nil {
		return nil, err
	}
	if out.older != nil {
		out.typeErrors = olderType(out.older.Spec.UpdateStrategy.Type)
	}
	return out, nil
}
