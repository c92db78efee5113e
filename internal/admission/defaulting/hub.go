package defaulting

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// inHub returns the handler that fills in the defaults of a kind of both versions. An object of the older version is filled in as what it means in
// the hub version; the answer is the difference that this makes in the version of the user.
func inHub[T any, P object[T]](fill func(now, old P)) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		if from.SubResource != "" || from.Operation == admissionv1.Delete {
			return admission.Allowed("")
		}
		written, now, err := decodeHub[T](from.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		if P(now).GetDeletionTimestamp() != nil {
			return admission.Allowed("") // nothing may stand in the way of its finalizers
		}
		var old P
		if from.Operation == admissionv1.Update {
			_, was, err := decodeHub[T](from.OldObject)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
			old = was
		}
		before, err := encodeAs(written, now)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		fill(now, old)
		after, err := encodeAs(written, now)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the object: %w", err))
		}
		return admission.Patched("", patch.Between(written.Object, before, after)...)
	})
}

// decodeHub returns an object as it was written, and what it means in the hub version.
func decodeHub[T any](from runtime.RawExtension) (*unstructured.Unstructured, *T, error) {
	written, err := request.Parse(from)
	if err != nil {
		return nil, nil, err
	}
	u := written
	if hub := v1beta1.GroupVersion.String(); written.GetAPIVersion() != hub {
		if u, err = convert.Object(written, hub); err != nil {
			return nil, nil, err
		}
	}
	now, err := request.Decode[T](u)
	return written, now, err
}

// encodeAs returns an object in the version that it was written in.
func encodeAs(written *unstructured.Unstructured, object any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: fields}
	if version := written.GetAPIVersion(); version != u.GetAPIVersion() {
		if u, err = convert.Object(u, version); err != nil {
			return nil, err
		}
	}
	return u.Object, nil
}
