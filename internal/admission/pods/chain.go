// Package pods changes new Pods before they are stored: one chain of steps in one order, of which each sees what the ones before have done,
// and one answer, a patch that touches only what changed.
//
// A step is a pure function of the Pod, of its namespace and of what is known from caches. Done again on its own result it changes nothing,
// so that the API server may ask twice. A Pod that a step denies is answered with a reason and status 422, any other error with 500.
package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/json"

	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
)

// Path is where new Pods are sent.
const Path = "/mutate-pod"

// Subject is a Pod that is being created.
type Subject struct {
	// Namespace is where the Pod will be.
	Namespace string
	// DryRun means that nothing will be stored.
	DryRun bool

	// requested is the Pod of the request, changed the Pod after the steps so far, nil as long as no step has changed it.
	requested, changed *corev1.Pod
	// unknownFields means that the request has fields that this build does not know.
	unknownFields bool
	warnings      []string
}

// Pod returns the Pod after the steps so far, to be read only. Its name is empty where the API server is to make one, and so is its
// namespace in the requests of some clients.
func (s *Subject) Pod() *corev1.Pod {
	if s.changed != nil {
		return s.changed
	}
	return s.requested
}

// Edit returns the Pod for a step to change.
func (s *Subject) Edit() *corev1.Pod {
	if s.changed == nil {
		s.changed = s.requested.DeepCopy()
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
	// Run changes the Pod. The user gets the message of a Denied; any other error is an internal one, after which clients try again.
	Run func(context.Context, *Subject) error
}

// Denied is an error that denies the Pod: it contradicts itself or a SidecarSet. Other errors are those of the manager.
type Denied struct{ Why error }

func (r Denied) Error() string { return r.Why.Error() }

func (r Denied) Unwrap() error { return r.Why }

// Chain is the handler of new Pods.
type Chain struct {
	// Steps run in this order.
	Steps []Step
	// Within is the only namespace whose Pods are changed; empty for all. In others no controller would go on with what a step begins.
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
	unknown, err := json.UnmarshalStrict(from.Object.Raw, p)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the Pod: %w", err))
	}
	if isMirror(p, from.UserInfo) {
		return admission.Allowed("")
	}
	// What a new Pod says of its status and its deletion does not count: the API server resets both after admission.
	subject := &Subject{
		requested: p, Namespace: cmp.Or(from.Namespace, p.Namespace, metav1.NamespaceDefault),
		DryRun: from.DryRun != nil && *from.DryRun, unknownFields: len(unknown) > 0,
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

// isMirror reports whether the Pod shows one that a kubelet runs from a file, which can't be changed here. Only a node may say so: else the
// annotation would let everybody create Pods without sidecars.
func isMirror(p *corev1.Pod, by authenticationv1.UserInfo) bool {
	_, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	return ok && slices.Contains(by.Groups, user.NodesGroup)
}

func failed(ctx context.Context, step Step, s *Subject, err error) admission.Response {
	var denied Denied
	if !errors.As(err, &denied) {
		log.FromContext(ctx).Error(err, "Admitting a Pod failed", "step", step.Name,
			"namespace", s.Namespace, "name", s.requested.Name, "generateName", s.requested.GenerateName)
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: denied.Error(),
	}}}
}

func respond(from runtime.RawExtension, s *Subject) admission.Response {
	if s.changed == nil {
		return admission.Allowed("").WithWarnings(s.warnings...)
	}
	if !s.unknownFields {
		return patched(patch.Known(s.requested, s.changed)).WithWarnings(s.warnings...)
	}
	raw, err := request.Parse(from)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the Pod: %w", err))
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.requested)
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

// Metrics tell how long the admission of new Pods and its steps take and how they end.
type Metrics struct {
	handled  prometheus.Histogram
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	replaced *prometheus.CounterVec
}

// NewMetrics returns metrics that the registry serves.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		handled: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kruise_pod_admission_seconds",
			Help:    "How long the admission of a new Pod took in the manager, from its decoded request to the answer.",
			Buckets: []float64{0.0001, 0.0002, 0.0003, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 3},
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kruise_pod_admission_step_seconds",
			Help:    "How long a step of the admission of new Pods took.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 9),
		}, []string{"step"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_pod_admission_step_failures_total",
			Help: "New Pods that a step stopped, by result: refused for what they ask, or error.",
		}, []string{"step", "result"}),
		replaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_pod_admission_replaced_containers_total",
			Help: "Containers of new Pods that a sidecar of the same name took the place of.",
		}, []string{"sidecarset"}),
	}
	for _, c := range []prometheus.Collector{m.handled, m.seconds, m.failures, m.replaced} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observeHandled counts a Pod that was answered for, whatever the answer.
func (m *Metrics) observeHandled(took time.Duration) {
	if m != nil {
		m.handled.Observe(took.Seconds())
	}
}

func (m *Metrics) observe(step string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.seconds.WithLabelValues(step).Observe(took.Seconds())
	if err == nil {
		return
	}
	result := "error"
	var denied Denied
	if errors.As(err, &denied) {
		result = "refused"
	}
	m.failures.WithLabelValues(step, result).Inc()
}

// forgetSidecarSet drops the series of a SidecarSet that is gone.
func (m *Metrics) forgetSidecarSet(name string) {
	if m != nil {
		m.replaced.DeleteLabelValues(name)
	}
}

// countReplaced counts a container that a SidecarSet replaced.
func (m *Metrics) countReplaced(sidecarSet string) {
	if m != nil {
		m.replaced.WithLabelValues(sidecarSet).Inc()
	}
}
