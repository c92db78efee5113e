package validating

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
)

// PodProbeMarkerOptions says what is on.
type PodProbeMarkerOptions struct {
	// DisabledBy is the feature gate that is off and without which nobody would run a probe; empty when all are on.
	DisabledBy string
}

// PodProbeMarker returns the handler that judges PodProbeMarkers.
func PodProbeMarker(o PodProbeMarkerOptions) admission.Handler {
	return onWritten(func(_ context.Context, asked admission.Request) admission.Response {
		now, err := decodeMarker(asked.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		var before *v1alpha1.PodProbeMarker
		if asked.Operation == admissionv1.Update {
			if before, err = decodeMarker(asked.OldObject); err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
			// What is on its way out must get rid of its finalizers, and what was stored before a rule was made can still be labelled.
			if now.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.Spec, before.Spec) {
				return admission.Allowed("")
			}
		}
		if o.DisabledBy != "" {
			return admission.Errored(http.StatusForbidden, errors.New("feature-gate "+o.DisabledBy+" is not enabled"))
		}
		if errs := checkMarker(now, before); len(errs) > 0 {
			return invalid(asked, errs)
		}
		return admission.Allowed("")
	})
}

func decodeMarker(from runtime.RawExtension) (*v1alpha1.PodProbeMarker, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, err
	}
	return request.Decode[v1alpha1.PodProbeMarker](u)
}

// checkMarker judges a marker; before is nil for a new one.
func checkMarker(now, before *v1alpha1.PodProbeMarker) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	selector := now.Spec.Selector
	switch {
	case selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0:
		errs = append(errs, field.Required(spec.Child("selector"), "name the labels of the Pods: an empty selector would probe every Pod of the namespace"))
	default:
		errs = append(errs, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
	}
	if before != nil && !equality.Semantic.DeepEqual(selector, before.Spec.Selector) {
		errs = append(errs, field.Invalid(spec.Child("selector"), selector, "is immutable: make another PodProbeMarker to probe other Pods"))
	}
	if len(now.Spec.Probes) == 0 {
		errs = append(errs, field.Required(spec.Child("probes"), "there is nothing to ask without a probe"))
	}
	names, conditions := map[string]bool{}, map[string]bool{}
	for i := range now.Spec.Probes {
		p := &now.Spec.Probes[i]
		at := spec.Child("probes").Index(i)
		errs = append(errs, checkProbe(p, at)...)
		if names[p.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		if p.PodConditionType != "" && conditions[p.PodConditionType] {
			errs = append(errs, field.Duplicate(at.Child("podConditionType"), p.PodConditionType))
		}
		names[p.Name], conditions[p.PodConditionType] = true, true
	}
	return errs
}

// reservedConditions are written by the kubelet, the scheduler and Kruise itself.
func reservedConditions() []string {
	return []string{
		string(corev1.PodScheduled), string(corev1.PodInitialized), string(corev1.PodReady), string(corev1.ContainersReady),
		string(pub.KruisePodReady), string(pub.InPlaceUpdateReady),
	}
}

func checkProbe(p *v1alpha1.PodContainerProbe, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case p.Name == "":
		errs = append(errs, field.Required(at.Child("name"), "name the probe"))
	case strings.Contains(p.Name, "#"):
		errs = append(errs, field.Invalid(at.Child("name"), p.Name, "must not contain a #: it parts the names of marker and probe"))
	case slices.Contains(reservedConditions(), p.Name):
		errs = append(errs, field.Invalid(at.Child("name"), p.Name, "is the name of a condition that is written otherwise"))
	}
	if p.ContainerName == "" {
		errs = append(errs, field.Required(at.Child("containerName"), "name the container to ask"))
	}
	condition := at.Child("podConditionType")
	switch {
	case p.PodConditionType == "" && len(p.MarkerPolicy) == 0:
		errs = append(errs, field.Required(condition, "without it and without markerPolicy nothing would show the answer"))
	case slices.Contains(reservedConditions(), p.PodConditionType):
		errs = append(errs, field.Invalid(condition, p.PodConditionType, "is a condition that is written otherwise"))
	case p.PodConditionType != "":
		errs = append(errs, metavalidation.ValidateLabelName(p.PodConditionType, condition)...)
	}
	errs = append(errs, checkHandler(&p.Probe.Probe, at.Child("probe"))...)
	return append(errs, checkPolicies(p.MarkerPolicy, at.Child("markerPolicy"))...)
}

func checkPolicies(policies []v1alpha1.ProbeMarkerPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[v1alpha1.ProbeState]bool{}
	for i, policy := range policies {
		at := at.Index(i)
		switch {
		case policy.State != v1alpha1.ProbeSucceeded && policy.State != v1alpha1.ProbeFailed:
			errs = append(errs, field.NotSupported(at.Child("state"), policy.State, []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed}))
		case seen[policy.State]:
			errs = append(errs, field.Duplicate(at.Child("state"), policy.State))
		}
		seen[policy.State] = true
		if len(policy.Labels)+len(policy.Annotations) == 0 {
			errs = append(errs, field.Required(at, "give labels or annotations"))
		}
		errs = append(errs, metavalidation.ValidateLabels(policy.Labels, at.Child("labels"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(policy.Annotations, at.Child("annotations"))...)
	}
	return errs
}

func checkHandler(p *corev1.Probe, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	handlers := 0
	if p.Exec != nil {
		handlers++
		if len(p.Exec.Command) == 0 {
			errs = append(errs, field.Required(at.Child("exec", "command"), "give the command to run"))
		}
	}
	if get := p.HTTPGet; get != nil {
		handlers++
		at := at.Child("httpGet")
		if get.Path == "" {
			errs = append(errs, field.Required(at.Child("path"), "give the path to get"))
		}
		if get.Scheme != "" && get.Scheme != corev1.URISchemeHTTP && get.Scheme != corev1.URISchemeHTTPS {
			errs = append(errs, field.NotSupported(at.Child("scheme"), get.Scheme, []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}))
		}
		errs = append(errs, checkAddress(get.Host, get.Port, at)...)
		for i, header := range get.HTTPHeaders {
			for _, wrong := range validation.IsHTTPHeaderName(header.Name) {
				errs = append(errs, field.Invalid(at.Child("httpHeaders").Index(i).Child("name"), header.Name, wrong))
			}
		}
	}
	if p.TCPSocket != nil {
		handlers++
		errs = append(errs, checkAddress(p.TCPSocket.Host, p.TCPSocket.Port, at.Child("tcpSocket"))...)
	}
	switch {
	case p.GRPC != nil:
		errs = append(errs, field.Forbidden(at.Child("grpc"), "is not supported: use exec, httpGet or tcpSocket"))
	case handlers == 0:
		errs = append(errs, field.Required(at, "give exec, httpGet or tcpSocket"))
	case handlers > 1:
		errs = append(errs, field.Forbidden(at, "give only one of exec, httpGet and tcpSocket"))
	}
	for name, seconds := range map[string]int32{
		"initialDelaySeconds": p.InitialDelaySeconds, "timeoutSeconds": p.TimeoutSeconds, "periodSeconds": p.PeriodSeconds,
		"successThreshold": p.SuccessThreshold, "failureThreshold": p.FailureThreshold,
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(seconds), at.Child(name))...)
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func checkAddress(host string, port intstr.IntOrString, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if host != "" {
		errs = append(errs, field.Forbidden(at.Child("host"), "the host is always the Pod"))
	}
	wrong := validation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		wrong = validation.IsValidPortName(port.StrVal)
	}
	for _, why := range wrong {
		errs = append(errs, field.Invalid(at.Child("port"), port.String(), why))
	}
	return errs
}
