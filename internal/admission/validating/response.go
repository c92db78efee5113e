package validating

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// invalid answers as the API server does for kinds of its own: status 422, with one cause for each field.
func invalid(request admission.Request, errs field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// protection returns why an object with these labels and replicas may not be deleted; nothing if it may.
//
// Wire: tools look for this message.
func protection(labels map[string]string, replicas int32) string {
	value := labels[keys.DeleteProtection]
	switch {
	case value == keys.DeleteProtectionAlways:
		return fmt.Sprintf("forbidden by ResourcesProtectionDeletion for %s=%s", keys.DeleteProtection, value)
	case value == keys.DeleteProtectionCascading && replicas > 0:
		return fmt.Sprintf("forbidden by ResourcesProtectionDeletion for %s=%s and replicas %d>0", keys.DeleteProtection, value, replicas)
	}
	return ""
}
