package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/convert"
)

// partitionPercentLimit is the default of the manager of Rollouts.
const partitionPercentLimit = 50

// Server answers as an API server that Kruise is installed in.
type Server struct {
	kinds catalog
	hooks hooks
	// SchemaOnly leaves out the webhooks: the answer is that of an API server that has the CustomResourceDefinitions and no manager.
	SchemaOnly bool
}

// NewServer returns a server whose webhooks read other objects from live.
func NewServer(live client.Reader, now func() time.Time) (*Server, error) {
	kinds, err := definitions()
	if err != nil {
		return nil, err
	}
	at, err := handlers(live, now)
	if err != nil {
		return nil, err
	}
	found, err := readHooks(at)
	return &Server{kinds: kinds, hooks: found}, err
}

// Answer is what a server says of a new object.
type Answer struct {
	// Unknown are the paths of fields that the schema does not know. A server that is asked to be strict, as kubectl asks, refuses them;
	// others drop them.
	Unknown []string
	// Refusal is the status of the refusal; nil if the object is stored.
	Refusal  *metav1.Status
	Warnings []string
}

// Message is that of the refusal; empty if the object is stored.
func (a Answer) Message() string {
	if a.Refusal == nil {
		return ""
	}
	return a.Refusal.Message
}

// Has reports whether a kind is one of Kruise.
func (s *Server) Has(kind schema.GroupKind) bool { return s.kinds[kind] != nil }

// Create answers to the creation of an object of one of Kruise's kinds. An error means that it could not be found out.
func (s *Server) Create(ctx context.Context, given *unstructured.Unstructured) (Answer, error) {
	var a Answer
	gvk := given.GroupVersionKind()
	d, err := s.kinds[gvk.GroupKind()]()
	if err != nil {
		return a, err
	}
	o, err := sent(given)
	if err != nil {
		return a, err
	}
	v := d.version(gvk.Version)
	if v == nil {
		errs := field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), o.GetAPIVersion(), versioned(gvk.Group, d.served()))}
		a.refuse(apierrors.NewInvalid(gvk.GroupKind(), o.GetName(), errs).Status())
		return a, nil
	}
	if v.namespaced {
		o.SetNamespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault))
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + "x")
	}
	if a.Unknown, err = v.decode(o); err != nil {
		a.refuse(apierrors.NewBadRequest(err.Error()).Status())
		return a, nil
	}
	ask := asked{Server: s, Answer: &a, kind: d, version: v}
	if o, err = ask.mutated(ctx, o); err != nil || a.Refusal != nil {
		return a, err
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		delete(o.Object, "status")
	}
	o.SetGeneration(1)
	errs, err := v.validate(ctx, o)
	if err != nil {
		return a, fmt.Errorf("asking the schema of %s: %w", gvk, err)
	}
	if len(errs) > 0 {
		a.refuse(apierrors.NewInvalid(gvk.GroupKind(), o.GetName(), errs).Status())
		return a, nil
	}
	return a, ask.validated(ctx, o)
}

// sent returns an object as it is read from a request: whole numbers are such there, however they were read from a file.
func sent(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(encoded)
}

func versioned(group string, versions []string) []string {
	out := make([]string, len(versions))
	for i, v := range versions {
		out[i] = group + "/" + v
	}
	return out
}

func (a *Answer) refuse(why metav1.Status) { a.Refusal = &why }

// asked is one object that webhooks are asked about.
type asked struct {
	*Server
	*Answer
	kind    *definition
	version *version
}

// mutated returns the object as the mutating webhooks leave it.
func (a asked) mutated(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, h := range a.hooks.mutating {
		response, err := a.ask(ctx, h, o)
		if err != nil || a.Refusal != nil || response == nil || len(response.Patches) == 0 {
			if err != nil || a.Refusal != nil {
				return nil, err
			}
			continue
		}
		operations, err := json.Marshal(response.Patches)
		if err != nil {
			return nil, err
		}
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			return nil, fmt.Errorf("reading the patch of %s: %w", h.name, err)
		}
		before, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		after, err := patch.Apply(before)
		if err != nil {
			return nil, fmt.Errorf("applying the patch of %s: %w", h.name, err)
		}
		o = &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(after); err != nil {
			return nil, err
		}
		if _, err := a.version.decode(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// validated notes what the validating webhooks say.
func (a asked) validated(ctx context.Context, o *unstructured.Unstructured) error {
	for _, h := range a.hooks.validating {
		if _, err := a.ask(ctx, h, o); err != nil || a.Refusal != nil {
			return err
		}
	}
	return nil
}

// ask asks a webhook; nil if it is not concerned.
func (a asked) ask(ctx context.Context, h hook, o *unstructured.Unstructured) (*ctrladmission.Response, error) {
	gvk := o.GroupVersionKind()
	resource := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: a.kind.Names.Plural}
	version, concerned := h.version(resource)
	if !concerned || a.SchemaOnly {
		return nil, nil
	}
	if version != gvk.Version {
		converted, err := convert.Object(o, gvk.Group+"/"+version)
		if err != nil {
			return nil, err
		}
		o = converted
	}
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	of := o.GroupVersionKind()
	response := h.handler.Handle(ctx, ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: o.GetName(), Namespace: o.GetNamespace(), Object: runtime.RawExtension{Raw: raw},
		Kind:     metav1.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: of.Kind},
		Resource: metav1.GroupVersionResource{Group: of.Group, Version: of.Version, Resource: resource.Resource},
	}})
	a.Warnings = append(a.Warnings, response.Warnings...)
	if !response.Allowed {
		a.refuse(denied(h.name, response.Result))
	}
	return &response, nil
}

// denied returns what an API server passes on of the refusal of a webhook.
func denied(name string, why *metav1.Status) metav1.Status {
	out := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden}
	if why != nil {
		out = *why.DeepCopy()
	}
	message := strings.TrimSpace(out.Message)
	if message == "" {
		message = string(out.Reason)
	}
	out.Message = fmt.Sprintf("admission webhook %q denied the request: %s", name, message)
	return out
}
