package defaulting

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// CloneSet returns the handler that fills in the defaults of CloneSets of both versions.
func CloneSet(o defaults.Options) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		switch {
		case from.SubResource != "" || from.Operation == admissionv1.Delete:
			return admission.Allowed("")
		case from.Kind.Version == v1beta1.GroupVersion.Version:
			return respond(from, func(set, old *v1beta1.CloneSet) { defaults.CloneSet(set, old, o) })
		case from.Kind.Version == v1alpha1.GroupVersion.Version:
			return respond(from, func(set, old *v1alpha1.CloneSet) { defaults.CloneSetV1alpha1(set, old, o) })
		}
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("there is no version %s of CloneSet here", from.Kind.Version))
	})
}

// object is a pointer to a kind.
type object[T any] interface {
	*T
	client.Object
}

// respond answers with what fill changes.
func respond[T any, P object[T]](from admission.Request, fill func(set, old P)) admission.Response {
	raw, set, err := decode[T](from.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	if P(set).GetDeletionTimestamp() != nil {
		return admission.Allowed("") // nothing may stand in the way of its finalizers
	}
	var old P
	if from.Operation == admissionv1.Update {
		_, was, err := decode[T](from.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		old = was
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	fill(set, old)
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the object: %w", err))
	}
	return admission.Patched("", patch.Between(raw, before, after)...)
}

func decode[T any](from runtime.RawExtension) (map[string]any, *T, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, nil, err
	}
	into, err := request.Decode[T](u)
	return u.Object, into, err
}
