package validating

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// kind is what the validation of one kind of workload does.
type kind interface {
	// protects reports whether objects are protected from being deleted, by label.
	protects() bool
	// doomed reads an object that is to be deleted: its labels, and how many Pods it stands for.
	doomed(object runtime.RawExtension) (labels map[string]string, pods int32, err error)
	// written judges an object that is created or updated.
	written(ctx context.Context, asked admission.Request) admission.Response
}

// handler returns what answers requests about the objects of a kind themselves; their subresources are nobody's business here.
func handler(k kind) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.SubResource != "" {
			return admission.Allowed("")
		}
		switch asked.Operation {
		case admissionv1.Delete:
			return deleted(k, asked)
		case admissionv1.Create, admissionv1.Update:
			return k.written(ctx, asked)
		}
		return admission.Allowed("")
	})
}

// deleted refuses to delete a protected object.
func deleted(k kind, asked admission.Request) admission.Response {
	if !k.protects() || len(asked.OldObject.Raw) == 0 { // a request to delete a collection is followed by one for each object
		return admission.Allowed("")
	}
	labels, pods, err := k.doomed(asked.OldObject)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	if reason := protection(labels, pods); reason != "" {
		return admission.Denied(reason)
	}
	return admission.Allowed("")
}

// replicasOf returns the number of Pods that a workload asks for.
func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
