package validating

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
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

// StatefulSet returns the handler that validates StatefulSets of both versions.
func StatefulSet(o StatefulSetOptions) admission.Handler { return handler(o) }

func (o StatefulSetOptions) protects() bool { return o.DeletionProtection }

func (o StatefulSetOptions) doomed(object runtime.RawExtension) (labels map[string]string, pods int32, err error) {
	set, _, err := decodeStatefulSet(object)
	if err != nil {
		return nil, 0, err
	}
	return set.Labels, replicasOf(set.Spec.Replicas), nil
}

func (o StatefulSetOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	now, template, err := decodeStatefulSet(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	c := statefulSetChange{StatefulSetOptions: o, new: now, namespace: asked.Namespace, rawTemplate: template}
	if asked.Operation == admissionv1.Update {
		if c.old, _, err = decodeStatefulSet(asked.OldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		// What is on its way out rolls nothing out any more, and its finalizers must come off. What was stored before a rule was made can
		// still be labelled and annotated.
		if now.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.Spec, c.old.Spec) {
			return admission.Allowed("")
		}
	}
	found, err := c.validate(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(found.errors) > 0 {
		return invalid(asked, found.errors).WithWarnings(found.warnings...)
	}
	found.warnings = append(found.warnings, c.warnings()...)
	return admission.Allowed("").WithWarnings(append(found.warnings, c.rival(ctx)...)...)
}

// decodeStatefulSet returns an object of either version, which have the same fields, and its template as it came.
func decodeStatefulSet(from runtime.RawExtension) (*v1beta1.StatefulSet, map[string]any, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, nil, err
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	set, err := request.Decode[v1beta1.StatefulSet](u)
	return set, template, err
}
