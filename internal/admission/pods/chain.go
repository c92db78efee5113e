package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Path is where new Pods are sent.
const Path = "/mutate-pod"

// Subject is a Pod on its way into the cluster.
type Subject struct {
	// Pod is what a step may change. Its name is empty where the API server is to make one, and so is its namespace in the requests of some
	// clients.
	Pod *corev1.Pod
	// Namespace is where the Pod will be.
	Namespace string
	// DryRun means that nothing will be stored.
	DryRun bool

	warnings []string
}

// Warn tells the user who creates the Pod of something that may not be what they wanted.
func (s *Subject) Warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// Step is one change that is made to new Pods.
type Step struct {
	// Name is what the step is known by in metrics.
	Name string
	// Run changes the Pod. A Refusal is answered to the user; after any other error the request is to be tried again.
	Run func(context.Context, *Subject) error
}

// Refusal is why a Pod can't be created.
type Refusal struct{ Why error }

func (r Refusal) Error() string { return r.Why.Error() }

func (r Refusal) Unwrap() error { return r.Why }

// Chain is the handler of new Pods.
type Chain struct {
	// Steps run in this order.
	Steps []Step
	// Metrics may be nil.
	Metrics *Metrics
}

// Handle answers with what the steps change.
func (c Chain) Handle(ctx context.Context, from admission.Request) admission.Response {
	if from.Operation != admissionv1.Create || from.SubResource != "" {
		return admission.Allowed("")
	}
	u, err := request.Parse(from.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the Pod: %w", err))
	}
	p, err := request.Decode[corev1.Pod](u)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the Pod: %w", err))
	}
	if !pod.IsActive(p) || isMirror(p) {
		return admission.Allowed("")
	}
	subject := &Subject{
		Pod: p.DeepCopy(), Namespace: cmp.Or(p.Namespace, from.Namespace, metav1.NamespaceDefault), DryRun: from.DryRun != nil && *from.DryRun,
	}
	for _, step := range c.Steps {
		began := time.Now()
		err := step.Run(ctx, subject)
		c.Metrics.observe(step.Name, time.Since(began), err)
		if err != nil {
			return failed(ctx, step, subject, err)
		}
	}
	return respond(u.Object, p, subject)
}

// isMirror reports whether the Pod is the image of one that a kubelet runs from a file, which nothing here can change.
func isMirror(p *corev1.Pod) bool {
	_, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

func failed(ctx context.Context, step Step, s *Subject, err error) admission.Response {
	var refusal Refusal
	if !errors.As(err, &refusal) {
		log.FromContext(ctx).Error(err, "A Pod could not be looked at", "step", step.Name, "namespace", s.Namespace, "name", s.Pod.Name, "generateName", s.Pod.GenerateName)
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: refusal.Error(),
	}}}
}

func respond(raw map[string]any, before *corev1.Pod, s *Subject) admission.Response {
	if equality.Semantic.DeepEqual(before, s.Pod) {
		return admission.Allowed("").WithWarnings(s.warnings...)
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the Pod: %w", err))
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.Pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the Pod: %w", err))
	}
	return admission.Patched("", patch.Between(raw, was, is)...).WithWarnings(s.warnings...)
}
