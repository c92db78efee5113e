package defaulting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

const hubVersion = "apps.kruise.io/v1beta1"

// object is a pointer to a kind.
type object[T any] interface {
	*T
	client.Object
}

// kind is how the defaults of a kind are filled in. H is the type of its hub version, v1beta1. What is written in v1alpha1 is converted to
// it, filled in, and converted back: the defaults of both are the same. To default another kind, return the handler of its kind.
type kind[H any, P object[H]] struct {
	// fill fills in the defaults of an object. old is what it replaces, nil for a new object.
	fill func(ctx context.Context, set, old P) error
	// older fills in, in an object of v1alpha1, what can't be told any more once it is converted. It may be nil.
	older func(set, old *unstructured.Unstructured) error
}

func (k kind[H, P]) handler() admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.SubResource != "" || asked.Operation == admissionv1.Delete {
			return admission.Allowed("")
		}
		raw, err := request.Parse(asked.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		if raw.GetDeletionTimestamp() != nil {
			return admission.Allowed("") // its finalizers must come off, whatever is in it
		}
		var old *unstructured.Unstructured
		if asked.Operation == admissionv1.Update {
			if old, err = request.Parse(asked.OldObject); err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
		}
		operations, err := k.patch(ctx, asked.Namespace, raw, old)
		var unreadable unreadableError
		switch {
		case errors.As(err, &unreadable):
			return admission.Errored(http.StatusBadRequest, err)
		case err != nil:
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.Patched("", operations...)
	})
}

// unreadableError says that an object can't be read.
type unreadableError struct{ error }

// patch returns what fills in the defaults of raw.
func (k kind[H, P]) patch(ctx context.Context, namespace string, raw, old *unstructured.Unstructured) ([]jsonpatch.Operation, error) {
	set, err := k.inHub(raw)
	if err != nil {
		return nil, err
	}
	before, err := k.asWritten(set, raw.GetAPIVersion())
	if err != nil {
		return nil, err
	}
	if k.older != nil && raw.GetAPIVersion() != hubVersion {
		older := raw.DeepCopy()
		if err := k.older(older, old); err != nil {
			return nil, err
		}
		if set, err = k.inHub(older); err != nil {
			return nil, err
		}
	}
	var was P
	if old != nil {
		if was, err = k.inHub(old); err != nil {
			return nil, err
		}
	}
	given := set.GetNamespace()
	set.SetNamespace(cmp.Or(given, namespace))
	if err := k.fill(ctx, set, was); err != nil {
		return nil, err
	}
	set.SetNamespace(given)
	after, err := k.asWritten(set, raw.GetAPIVersion())
	return patch.Between(raw.Object, before, after), err
}

// inHub returns what this build understands of an object in the hub version.
func (k kind[H, P]) inHub(u *unstructured.Unstructured) (P, error) {
	if u.GetAPIVersion() != hubVersion {
		var err error
		if u, err = convert.Object(u, hubVersion); err != nil {
			return nil, unreadableError{err}
		}
	}
	set, err := request.Decode[H](u)
	if err != nil {
		return nil, unreadableError{fmt.Errorf("reading the object: %w", err)}
	}
	return set, nil
}

// asWritten returns an object of the hub version in the version that the user wrote it in.
func (k kind[H, P]) asWritten(set P, version string) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil || version == hubVersion {
		return fields, err
	}
	u, err := convert.Object(&unstructured.Unstructured{Object: fields}, version)
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}

// fillWith returns what kind.fill is for defaults that need no more than options.
func fillWith[P any](fill func(set, old P, o defaults.Options), o defaults.Options) func(context.Context, P, P) error {
	return func(_ context.Context, set, old P) error {
		fill(set, old, o)
		return nil
	}
}
