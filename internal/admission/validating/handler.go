package validating

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// Options is what validation needs, and which gates it heeds.
type Options struct {
	// Live reads other objects from the API server rather than from a cache: what was just created must be found.
	Live client.Reader
	// Templates checks Pod templates, containers and volumes; without it they are not looked into.
	Templates TemplateChecker
	// InPlace says which changes can go in place.
	InPlace inplace.Options
	// Namespace is where revisions of SidecarSets and the configuration are kept.
	Namespace string
	// Accepted is told of each SidecarSet that is about to be stored with another spec, which is refused if it fails. It may be nil.
	Accepted OnAccept
	// AcceptedSpread is the same for WorkloadSpreads. SpreadKinds returns the kinds of workloads that the configuration lets be spread.
	AcceptedSpread OnAcceptSpread
	SpreadKinds    func(context.Context) ([]schema.GroupKind, error)
	// Disabled says, for each kind of which no object is of any use, that a feature gate is off.
	//
	// Wire: tools look for this message.
	Disabled map[string]string
	// Distributed are the kinds that ResourceDistributions may copy.
	Distributed []distribution.Kind
	// OtherClusters lets subsets of UnitedDeployments be in other clusters (gate UnitedDeploymentMultiCluster).
	OtherClusters bool
	// ShortHash keeps the name of a CloneSet out of label values, so that it may be long (gate CloneSetShortHash).
	ShortHash bool
	// ClaimResize heeds volumeClaimUpdateStrategy of StatefulSets (gate StatefulSetAutoResizePVCGate).
	ClaimResize bool
	// AnyAnnotation lets SidecarSets write every annotation that no rule of the configuration speaks of (gate
	// SidecarSetPatchPodMetadataDefaultsAllowed).
	AnyAnnotation bool
}

// OnAccept is told of a SidecarSet that is about to be stored, and of the one that it replaces, nil if there is none.
type OnAccept func(ctx context.Context, before, after *v1beta1.SidecarSet) error

// OnAcceptSpread is told of a WorkloadSpread that is about to be stored, and of the one that it replaces, nil if there is none.
type OnAcceptSpread func(ctx context.Context, before, after *v1beta1.WorkloadSpread) error

// disabled returns the answer for every new object and new spec of a kind that a feature gate turns off; nil while it is on.
func (o Options) disabled(kind string, code int32) *admission.Response {
	why, off := o.Disabled[kind]
	if !off {
		return nil
	}
	response := admission.Errored(code, errors.New(why))
	return &response
}

// kind is what there is to know of a kind to validate its objects. H is the type of its hub version, the only one that rules are written
// for.
//
// To validate another kind, fill in a kind and return its handler, as cloneset.go does, and give the handler its path in register.go.
type kind[H any, P object[H]] struct {
	// hub is the version of H. An object of another version is converted to it first.
	hub schema.GroupVersion
	// subject returns what the rules are about. An update that leaves it unchanged is allowed, whatever is in it.
	subject func(*H) any
	// disabled answers what would be validated while a feature gate is off; nil while it is on.
	disabled *admission.Response
	// validate returns what is wrong with a write, and warnings. An error means that it could not be found out.
	validate func(context.Context, write[H]) (findings, error)
	// ineffective warns of what has no effect as it is written. Every write that is allowed is answered so. It may be nil.
	ineffective func(*findings, write[H])
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
		case asked.Operation == admissionv1.Create, asked.Operation == admissionv1.Update:
			return k.written(ctx, asked)
		}
		return admission.Allowed("")
	})
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
			return k.allowed(w, findings{})
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
	return k.allowed(w, found)
}

func (k kind[H, P]) allowed(w write[H], found findings) admission.Response {
	if k.ineffective != nil {
		k.ineffective(&found, w)
	}
	return admission.Allowed("").WithWarnings(found.warnings...)
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

func (f *findings) invalid(at *field.Path, value any, format string, args ...any) {
	f.errors = append(f.errors, field.Invalid(at, value, fmt.Sprintf(format, args...)))
}

func (f *findings) forbidden(at *field.Path, format string, args ...any) {
	f.errors = append(f.errors, field.Forbidden(at, fmt.Sprintf(format, args...)))
}

func (f *findings) required(at *field.Path, why string) {
	f.errors = append(f.errors, field.Required(at, why))
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

// messages adds what the validation of one value says is wrong with it.
func (f *findings) messages(at *field.Path, value any, messages []string) {
	for _, message := range messages {
		f.errors = append(f.errors, field.Invalid(at, value, message))
	}
}

// selector checks a label selector, if there is one. The schema can't: CEL would cost too much on lists of any length.
func (f *findings) selector(at *field.Path, selector *metav1.LabelSelector) {
	f.add(metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at))
}

func (f *findings) add(errs field.ErrorList) { f.errors = append(f.errors, errs...) }

func (f *findings) join(more findings) {
	f.errors, f.warnings = append(f.errors, more.errors...), append(f.warnings, more.warnings...)
}

// rules find what is wrong with an object by itself.
type rules[H any] func(*findings, *H)

// validate is what kind.validate is for a kind that has no more than rules.
func (r rules[H]) validate(_ context.Context, w write[H]) (findings, error) {
	return r.ratcheted(w), nil
}

// ratcheted returns what is wrong with the new object and was not wrong with the old one: an object that was stored before a rule was made
// can be changed elsewhere. CRD schemas ratchet in the same way.
func (r rules[H]) ratcheted(w write[H]) findings {
	var now, before findings
	r(&now, w.new)
	if w.old == nil || len(now.errors) == 0 {
		return now
	}
	r(&before, w.old)
	known := map[string]bool{}
	for _, err := range before.errors {
		known[err.Error()] = true
	}
	now.errors = slices.DeleteFunc(now.errors, func(err *field.Error) bool { return known[err.Error()] })
	return now
}

// replicasOf returns the number of Pods that a workload asks for.
func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// invalid answers as the API server does for kinds of its own: status 422, with one cause for each field.
func invalid(request admission.Request, errs field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
