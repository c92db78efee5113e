package validating

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// kind is what there is to know of a kind to validate its objects. H is the type of its hub version, the only one that rules are written
// for.
//
// To validate another kind, fill in a kind and return its handler, as cloneset.go does, and give the handler its path in register.go.
type kind[H any, P object[H]] struct {
	// hub is the version of H. An object of another version is converted to it first.
	hub schema.GroupVersion
	// subject returns what the rules are about. An update that leaves it unchanged is allowed, whatever is in it.
	subject func(*H) any
	// pods returns how many Pods an object stands for. It is set where a label protects objects from deletion, for as long as they have
	// Pods.
	pods func(*H) int32
	// disabled answers what would be validated while a feature gate is off; nil while it is on.
	disabled *admission.Response
	// validate returns what is wrong with a write, and warnings. An error means that it could not be found out.
	validate func(context.Context, write[H]) (findings, error)
	// ineffective returns warnings of what has no effect as it is written. Every write that is allowed is answered with them. It may be
	// nil.
	ineffective func(write[H]) []string
	// olderNames returns how v1alpha1 spells the fields of the hub that it spells differently. It may be nil.
	olderNames func(write[H]) []olderName
}

// object is a pointer to an object of the API.
type object[T any] interface {
	*T
	client.Object
}

// write is the creation or update of an object. All of it but written is in the hub version.
type write[H any] struct {
	// old is nil for a new object.
	old, new *H
	// raw is the new object with all that this build does not know.
	raw map[string]any
	// written is the new object in the version that the user wrote it in.
	written map[string]any
	// older says that the user wrote it in v1alpha1.
	older     bool
	namespace string
	dryRun    bool
}

// olderName is how v1alpha1 spells a field of the hub version and all fields in it.
type olderName struct{ hub, older string }

// handler returns what answers requests about the objects of a kind, and allows what is done to their subresources.
func (k kind[H, P]) handler() admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		switch {
		case asked.SubResource != "":
		case asked.Operation == admissionv1.Delete:
			return k.deleted(asked)
		case asked.Operation == admissionv1.Create, asked.Operation == admissionv1.Update:
			return k.written(ctx, asked)
		}
		return admission.Allowed("")
	})
}

// deleted refuses to delete a protected object.
func (k kind[H, P]) deleted(asked admission.Request) admission.Response {
	if k.pods == nil || len(asked.OldObject.Raw) == 0 { // a request to delete a collection is followed by one for each object
		return admission.Allowed("")
	}
	w, err := k.read(asked.OldObject)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	if reason := protection(P(w.new).GetLabels(), k.pods(w.new)); reason != "" {
		return admission.Denied(reason)
	}
	return admission.Allowed("")
}

// written validates an object that is created or updated.
func (k kind[H, P]) written(ctx context.Context, asked admission.Request) admission.Response {
	w, err := k.read(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	w.namespace, w.dryRun = asked.Namespace, asked.DryRun != nil && *asked.DryRun
	if asked.Operation == admissionv1.Update {
		before, err := k.read(asked.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		w.old = before.new
		// The finalizers of an object that is being deleted must come off, and one stored before a rule was made can still be labelled.
		if P(w.new).GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(k.subject(w.new), k.subject(w.old)) {
			return k.allowed(w)
		}
	}
	if k.disabled != nil {
		return *k.disabled
	}
	found, err := k.validate(ctx, w)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case len(found.errors) > 0:
		return invalid(asked, k.asWritten(w, found.errors)).WithWarnings(found.warnings...)
	}
	return k.allowed(w, found.warnings...)
}

func (k kind[H, P]) allowed(w write[H], warnings ...string) admission.Response {
	if k.ineffective != nil {
		warnings = append(warnings, k.ineffective(w)...)
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

// read returns an object of either version.
func (k kind[H, P]) read(from runtime.RawExtension) (write[H], error) {
	u, err := request.Parse(from)
	if err != nil {
		return write[H]{}, err
	}
	w := write[H]{written: u.Object}
	if hub := k.hub.String(); u.GetAPIVersion() != hub {
		w.older = true
		if u, err = convert.Object(u, hub); err != nil {
			return write[H]{}, err
		}
	}
	w.raw = u.Object
	w.new, err = request.Decode[H](u)
	return w, err
}

// asWritten names fields as the user's version does.
func (k kind[H, P]) asWritten(w write[H], errs field.ErrorList) field.ErrorList {
	if !w.older || k.olderNames == nil {
		return errs
	}
	names := k.olderNames(w)
	for _, err := range errs {
		for _, name := range names { // the first match counts
			if rest, ok := strings.CutPrefix(err.Field, name.hub); ok {
				err.Field = name.older + rest
				break
			}
		}
	}
	return errs
}

// rawTemplate returns the Pod template at spec.template with all that this build does not know.
func (w write[H]) rawTemplate() map[string]any {
	template, _, _ := unstructured.NestedMap(w.raw, "spec", "template")
	return template
}

// findings is what is to be said about a write.
type findings struct {
	errors   field.ErrorList
	warnings []string
}

func (f *findings) join(more findings) {
	f.errors, f.warnings = append(f.errors, more.errors...), append(f.warnings, more.warnings...)
}

func (f *findings) add(errs field.ErrorList) { f.errors = append(f.errors, errs...) }

// replicasOf returns the number of Pods that a workload asks for.
func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
