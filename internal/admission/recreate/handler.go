package recreate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	rules "github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// Options is what the webhook works with.
type Options struct {
	// Live reads Pods and nodes around any cache: what is frozen has to be what is.
	Live client.Reader
	// Disabled says that no daemon runs on the nodes, so that nobody would answer a request.
	Disabled bool
}

// Handler returns the handler that completes and judges requests. The API server gives it each in v1beta1, however it was written.
func Handler(o Options) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.SubResource != "" {
			return admission.Allowed("")
		}
		r, err := decode(asked.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		if asked.Operation == admissionv1.Update {
			before, err := decode(asked.OldObject.Raw)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
			return update(asked, before, r)
		}
		if o.Disabled {
			return admission.Errored(http.StatusForbidden, errors.New("feature-gate KruiseDaemon is not enabled"))
		}
		return o.create(ctx, asked, r)
	})
}

func decode(raw []byte) (*v1beta1.ContainerRecreateRequest, error) {
	u, err := request.Parse(runtime.RawExtension{Raw: raw})
	if err != nil {
		return nil, err
	}
	if version := u.GetAPIVersion(); version != v1beta1.GroupVersion.String() {
		return nil, fmt.Errorf("there is no ContainerRecreateRequest of %s here", version)
	}
	return request.Decode[v1beta1.ContainerRecreateRequest](u)
}

func (o Options) create(ctx context.Context, asked admission.Request, r *v1beta1.ContainerRecreateRequest) admission.Response {
	if errs := written(r); len(errs) > 0 {
		return invalid(asked, errs)
	}
	at := field.NewPath("spec")
	var p corev1.Pod
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: asked.Namespace, Name: r.Spec.PodName}, &p); err != nil {
		if apierrors.IsNotFound(err) {
			return invalid(asked, field.ErrorList{field.Invalid(at.Child("podName"), r.Spec.PodName, "there is no such Pod in the namespace of the request")})
		}
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading the Pod: %w", err))
	}
	if errs := answerable(r, &p); len(errs) > 0 {
		return invalid(asked, errs)
	}
	var node corev1.Node
	if err := o.Live.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, &node); err != nil {
		if apierrors.IsNotFound(err) {
			return invalid(asked, field.ErrorList{field.Invalid(at.Child("podName"), r.Spec.PodName, fmt.Sprintf("the Pod's node %s does not exist", p.Spec.NodeName))})
		}
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading the node: %w", err))
	}
	before := r.DeepCopy()
	rules.Fill(r, &p, &node)
	return patched(before, r)
}

// patched answers with what was filled in. Only labels, the strategy and the containers are.
func patched(before, after *v1beta1.ContainerRecreateRequest) admission.Response {
	set := func(path string, value any) jsonpatch.Operation { return jsonpatch.NewOperation("add", path, value) }
	patches := []jsonpatch.Operation{
		set("/metadata/labels", after.Labels), set("/spec/strategy", after.Spec.Strategy), set("/spec/containers", after.Spec.Containers),
	}
	// They belong to v1alpha1 and mean nothing here.
	stray := slices.DeleteFunc([]string{keys.RecreateUnreadyAcquired, keys.RecreateSyncContainerStatuses}, func(key string) bool {
		_, there := before.Annotations[key]
		return !there
	})
	if len(stray) > 0 {
		for _, key := range stray {
			delete(after.Annotations, key)
		}
		patches = append(patches, set("/metadata/annotations", after.Annotations))
	}
	return admission.Patched("", patches...)
}

func update(asked admission.Request, before, after *v1beta1.ContainerRecreateRequest) admission.Response {
	if err := kept(before, after, asked.RequestKind != nil && asked.RequestKind.Version == v1alpha1.GroupVersion.Version); err != nil {
		return admission.Errored(http.StatusForbidden, err)
	}
	return admission.Allowed("")
}

func invalid(asked admission.Request, errs field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest").GroupKind(), asked.Name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
