package validating

import (
	"context"
	"errors"
	"net/http"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// PodProbeMarkerOptions says what is on.
type PodProbeMarkerOptions struct {
	// DisabledBy is the feature gate that is off and without which nobody would run a probe; empty when all are on.
	DisabledBy string
}

// PodProbeMarker returns the handler that validates of PodProbeMarkers what their schema can't.
func PodProbeMarker(o PodProbeMarkerOptions) admission.Handler {
	k := kind[v1alpha1.PodProbeMarker, *v1alpha1.PodProbeMarker]{
		hub:     v1alpha1.GroupVersion,
		subject: func(marker *v1alpha1.PodProbeMarker) any { return marker.Spec },
		validate: func(_ context.Context, w write[v1alpha1.PodProbeMarker]) (findings, error) {
			return findings{errors: ratcheted(markerRules, w.new, w.old)}, nil
		},
	}
	if o.DisabledBy != "" {
		response := admission.Errored(http.StatusForbidden, errors.New("feature-gate "+o.DisabledBy+" is not enabled"))
		k.disabled = &response
	}
	return k.handler()
}

func markerRules(marker *v1alpha1.PodProbeMarker) field.ErrorList {
	spec := field.NewPath("spec")
	errs := metavalidation.ValidateLabelSelector(marker.Spec.Selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("selector"))
	for i := range marker.Spec.Probes {
		p, at := &marker.Spec.Probes[i], spec.Child("probes").Index(i)
		for j, policy := range p.MarkerPolicy {
			at := at.Child("markerPolicy").Index(j)
			errs = append(errs, metavalidation.ValidateLabels(policy.Labels, at.Child("labels"))...)
			errs = append(errs, apivalidation.ValidateAnnotations(policy.Annotations, at.Child("annotations"))...)
		}
		probe := at.Child("probe")
		if get := p.Probe.HTTPGet; get != nil {
			errs = append(errs, checkPort(get.Port, probe.Child("httpGet", "port"))...)
			for j, header := range get.HTTPHeaders {
				for _, wrong := range validation.IsHTTPHeaderName(header.Name) {
					errs = append(errs, field.Invalid(probe.Child("httpGet", "httpHeaders").Index(j).Child("name"), header.Name, wrong))
				}
			}
		}
		if socket := p.Probe.TCPSocket; socket != nil {
			errs = append(errs, checkPort(socket.Port, probe.Child("tcpSocket", "port"))...)
		}
	}
	return errs
}

func checkPort(port intstr.IntOrString, at *field.Path) field.ErrorList {
	wrong := validation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		wrong = validation.IsValidPortName(port.StrVal)
	}
	var errs field.ErrorList
	for _, why := range wrong {
		errs = append(errs, field.Invalid(at, port.String(), why))
	}
	return errs
}
