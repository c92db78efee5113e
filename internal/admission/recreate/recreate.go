// Package recreate answers the webhook of ContainerRecreateRequests: it validates a new request against the Pod as it is, records in the
// request what the Pod is, and keeps both as they are from then on. What can be told from the request alone is in its schema, which the API
// server validates after this webhook.
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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	rules "github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// sidecarTerminated is the condition of a Pod whose main containers have ended: its sidecars may still have to be stopped.
const sidecarTerminated corev1.PodConditionType = "SidecarTerminated"

// Options is what the webhook works with.
type Options struct {
	// Live reads Pods and nodes from the API server: what is recorded must not be from an old cache.
	Live client.Reader
	// Disabled says that no daemon runs on the nodes, so that no request would be carried out.
	Disabled bool
}

// Handler returns the handler that completes and validates requests. The API server converts those of v1alpha1 to v1beta1 first.
func Handler(o Options) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.SubResource != "" {
			return admission.Allowed("")
		}
		r, err := decode(asked.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		switch {
		case asked.Operation == admissionv1.Update:
			before, err := decode(asked.OldObject)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
			if err := keeps(before, r, asked.RequestKind != nil && asked.RequestKind.Version == v1alpha1.GroupVersion.Version); err != nil {
				return admission.Errored(http.StatusForbidden, err)
			}
			return admission.Allowed("")
		case o.Disabled:
			return admission.Errored(http.StatusForbidden, errors.New("feature-gate KruiseDaemon is not enabled"))
		case r.Spec.PodName == "" || len(r.Spec.Containers) == 0:
			return admission.Allowed("the schema refuses it")
		}
		return o.create(ctx, asked, r)
	})
}

func decode(raw runtime.RawExtension) (*v1beta1.ContainerRecreateRequest, error) {
	u, err := request.Parse(raw)
	if err != nil {
		return nil, err
	}
	if version := u.GetAPIVersion(); version != v1beta1.GroupVersion.String() {
		return nil, fmt.Errorf("there is no ContainerRecreateRequest of %s here", version)
	}
	return request.Decode[v1beta1.ContainerRecreateRequest](u)
}

// create validates a new request and completes it from its Pod.
func (o Options) create(ctx context.Context, asked admission.Request, r *v1beta1.ContainerRecreateRequest) admission.Response {
	name := field.NewPath("spec", "podName")
	errs := overwritten(r)
	p, node := &corev1.Pod{}, &corev1.Node{}
	if len(errs) == 0 {
		found, err := o.find(ctx, client.ObjectKey{Namespace: asked.Namespace, Name: r.Spec.PodName}, p)
		switch {
		case err != nil:
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading the Pod: %w", err))
		case !found:
			errs = field.ErrorList{field.Invalid(name, r.Spec.PodName, "there is no such Pod in the namespace of the request")}
		default:
			errs = restartable(r, p)
		}
	}
	if len(errs) == 0 {
		found, err := o.find(ctx, client.ObjectKey{Name: p.Spec.NodeName}, node)
		switch {
		case err != nil:
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading the node: %w", err))
		case !found:
			errs = field.ErrorList{field.Invalid(name, p.Name, fmt.Sprintf("the Pod's node %s does not exist", p.Spec.NodeName))}
		}
	}
	if len(errs) > 0 {
		status := apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest").GroupKind(), asked.Name, errs).Status()
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
	}
	return admission.Patched("", completed(r, p, node)...)
}

func (o Options) find(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := o.Live.Get(ctx, key, into)
	return err == nil, client.IgnoreNotFound(err)
}

// completed returns the patch that completes a request: only labels, the strategy and the containers change, and the annotations that
// belong to v1alpha1 and mean nothing in this version go.
func completed(r *v1beta1.ContainerRecreateRequest, p *corev1.Pod, node *corev1.Node) []jsonpatch.Operation {
	set := func(path string, value any) jsonpatch.Operation { return jsonpatch.NewOperation("add", path, value) }
	rules.Fill(r, p, node)
	patch := []jsonpatch.Operation{
		set("/metadata/labels", r.Labels), set("/spec/strategy", r.Spec.Strategy), set("/spec/containers", r.Spec.Containers),
	}
	before := len(r.Annotations)
	delete(r.Annotations, keys.RecreateUnreadyAcquired)
	delete(r.Annotations, keys.RecreateSyncContainerStatuses)
	if len(r.Annotations) < before {
		patch = append(patch, set("/metadata/annotations", r.Annotations))
	}
	return patch
}

// overwritten returns an error for each field that the user has set and that is filled in: no schema can tell the two apart.
func overwritten(r *v1beta1.ContainerRecreateRequest) field.ErrorList {
	var errs field.ErrorList
	for i, c := range r.Spec.Containers {
		at := field.NewPath("spec", "containers").Index(i)
		for _, filled := range []struct {
			name string
			set  bool
		}{{"preStop", c.PreStop != nil}, {"ports", len(c.Ports) > 0}, {"statusContext", c.StatusContext != nil}} {
			if filled.set {
				errs = append(errs, field.Forbidden(at.Child(filled.name), "is filled in when the request is created: leave it out"))
			}
		}
	}
	return errs
}

// restartable validates a new request against its Pod: a daemon has to see the request, and every container must have been started.
func restartable(r *v1beta1.ContainerRecreateRequest, p *corev1.Pod) field.ErrorList {
	wrong := func(format string, args ...any) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "podName"), p.Name, fmt.Sprintf(format, args...))}
	}
	ended := pod.Condition(p, sidecarTerminated)
	switch {
	case p.DeletionTimestamp != nil, pod.IsFinished(p) && (ended == nil || ended.Status != corev1.ConditionTrue):
		return wrong("not support to recreate containers in an inactive Pod")
	case p.Spec.NodeName == "":
		return wrong("not support to recreate containers in a Pod that is not bound to a node yet")
	}
	if why := validation.IsValidLabelValue(p.Spec.NodeName); len(why) > 0 {
		return wrong("the name of the Pod's node, %s, can't be the value of a label, by which the node's daemon would find the request: %s",
			p.Spec.NodeName, why[0])
	}
	var errs field.ErrorList
	for i, c := range r.Spec.Containers {
		at := field.NewPath("spec", "containers").Index(i).Child("name")
		status := pod.LastingStatus(p, c.Name)
		switch {
		case slices.ContainsFunc(r.Spec.Containers[:i], func(d v1beta1.ContainerRecreateRequestContainer) bool { return d.Name == c.Name }):
			errs = append(errs, field.Invalid(at, c.Name, fmt.Sprintf("can not recreate %s multi times", c.Name)))
		case pod.Lasting(p, c.Name) == nil:
			errs = append(errs, field.Invalid(at, c.Name, fmt.Sprintf("container %s not found in Pod", c.Name)))
		case status == nil || status.ContainerID == "":
			errs = append(errs, field.Invalid(at, c.Name,
				fmt.Sprintf("no containerID of %s in Pod, maybe the container has not been initialized", c.Name)))
		}
	}
	return errs
}

// keeps checks that an update keeps the request as it is: only a shorter TTL, and a deadline where there was none, are allowed. older says
// that it was written in v1alpha1.
func keeps(before, after *v1beta1.ContainerRecreateRequest, older bool) error {
	was, is := before.Spec.DeepCopy(), after.Spec.DeepCopy()
	if ttl := is.TTLSecondsAfterFinished; ttl != nil && (was.TTLSecondsAfterFinished == nil || *ttl < *was.TTLSecondsAfterFinished) {
		was.TTLSecondsAfterFinished = ttl
	}
	if was.ActiveDeadlineSeconds == nil {
		is.ActiveDeadlineSeconds = nil
	}
	if !equality.Semantic.DeepEqual(was, is) {
		return errors.New("spec of ContainerRecreateRequest is immutable: make another request")
	}
	for _, key := range []string{keys.RecreatePodUID, keys.RecreateNodeName} {
		if before.Labels[key] != after.Labels[key] {
			return fmt.Errorf("label %s of ContainerRecreateRequest is immutable", key)
		}
	}
	// What is a condition in v1beta1 is an annotation in v1alpha1, which whoever may write the request could change.
	since := meta.FindStatusCondition(before.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if !older || since == nil {
		return nil
	}
	now := meta.FindStatusCondition(after.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if now == nil || !now.LastTransitionTime.Equal(&since.LastTransitionTime) {
		return fmt.Errorf("annotation %s of ContainerRecreateRequest is immutable", keys.RecreateUnreadyAcquired)
	}
	return nil
}
