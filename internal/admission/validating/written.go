package validating

import (
	"context"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
)

// onWritten returns what has judge answer requests that create or update objects themselves, and allows everything else.
func onWritten(judge func(context.Context, admission.Request) admission.Response) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.SubResource != "" || asked.Operation != admissionv1.Create && asked.Operation != admissionv1.Update {
			return admission.Allowed("")
		}
		return judge(ctx, asked)
	})
}

// meaning returns what an object means in the hub version H, and how it was written if that was in the older version O.
func meaning[H, O any](u *unstructured.Unstructured, toHub func(*O, *H)) (hub *H, older *O, err error) {
	switch u.GetAPIVersion() {
	case v1beta1.GroupVersion.String():
		hub, err = request.Decode[H](u)
		return hub, nil, err
	case v1alpha1.GroupVersion.String():
		if older, err = request.Decode[O](u); err != nil {
			return nil, nil, err
		}
		hub = new(H)
		toHub(older, hub)
		return hub, older, nil
	}
	return nil, nil, fmt.Errorf("there is no %s of %s here", reflect.TypeFor[H]().Name(), u.GetAPIVersion())
}
