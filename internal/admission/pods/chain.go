package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/json"

	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Path is where new Pods are sent.
const Path = "/mutate-pod"

// Subject is a Pod on its way into the cluster.
type Subject struct {
	// Namespace is where the Pod will be.
	Namespace string
	// DryRun means that nothing will be stored.
	DryRun bool

	// asked is the Pod as it came, changed the Pod as it is by now, nil as long as no step has changed it.
	asked, changed *corev1.Pod
	// odd means that the Pod came with fields that this build does not know.
	odd      bool
	warnings []string
}

// Pod returns the Pod as it is by now, to be read only. Its name is empty where the API server is to make one, and so is its namespace in the
// requests of some clients.
func (s *Subject) Pod() *corev1.Pod {
	if s.changed != nil {
		return s.changed
	}
	return s.asked
}

// Edit returns the Pod for a step to change.
func (s *Subject) Edit() *corev1.Pod {
	if s.changed == nil {
		s.changed = s.asked.DeepCopy()
	}
	return s.changed
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
	// Within is the only namespace whose Pods are looked at; empty for all. In others no controller would go on with what a step begins.
	Within string
	// Metrics may be nil.
	Metrics *Metrics
}

// Handle answers with what the steps change.
func (c Chain) Handle(ctx context.Context, from admission.Request) admission.Response {
	if from.Operation != admissionv1.Create || from.SubResource != "" {
		return admission.Allowed("")
	}
	began := time.Now()
	defer func() { c.Metrics.observeHandled(time.Since(began)) }()
	// Straight into the type, unlike for our own kinds: most Pods are left alone, and the API server has read their quantities already.
	p := &corev1.Pod{}
	odd, err := json.UnmarshalStrict(from.Object.Raw, p)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the Pod: %w", err))
	}
	if !pod.IsActive(p) || isMirror(p) {
		return admission.Allowed("")
	}
	subject := &Subject{
		asked: p, Namespace: cmp.Or(p.Namespace, from.Namespace, metav1.NamespaceDefault), DryRun: from.DryRun != nil && *from.DryRun, odd: len(odd) > 0,
	}
	if c.Within != "" && c.Within != subject.Namespace {
		return admission.Allowed("")
	}
	for _, step := range c.Steps {
		began := time.Now()
		err := step.Run(ctx, subject)
		c.Metrics.observe(step.Name, time.Since(began), err)
		if err != nil {
			return failed(ctx, step, subject, err)
		}
	}
	return respond(from.Object, subject)
}

// isMirror reports whether the Pod is the image of one that a kubelet runs from a file, which nothing here can change.
func isMirror(p *corev1.Pod) bool {
	_, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

func failed(ctx context.Context, step Step, s *Subject, err error) admission.Response {
	var refusal Refusal
	if !errors.As(err, &refusal) {
		log.FromContext(ctx).Error(err, "A Pod could not be looked at", "step", step.Name, "namespace", s.Namespace, "name", s.asked.Name, "generateName", s.asked.GenerateName)
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: refusal.Error(),
	}}}
}

func respond(from runtime.RawExtension, s *Subject) admission.Response {
	if s.changed == nil {
		return admission.Allowed("").WithWarnings(s.warnings...)
	}
	if !s.odd {
		return patched(patch.Known(s.asked, s.changed)).WithWarnings(s.warnings...)
	}
	raw, err := request.Parse(from)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the Pod: %w", err))
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.asked)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the Pod: %w", err))
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.changed)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the Pod: %w", err))
	}
	return patched(patch.Between(raw.Object, was, is)).WithWarnings(s.warnings...)
}

func patched(operations []jsonpatch.Operation) admission.Response {
	response := admission.Allowed("")
	if len(operations) == 0 {
		return response
	}
	encoded, err := patch.Encode(operations)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the changes: %w", err))
	}
	kind := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = encoded, &kind
	return response
}
