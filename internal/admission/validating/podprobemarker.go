package validating

import (
	"net/http"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// PodProbeMarker returns the handler that validates of PodProbeMarkers what their schema can't.
func PodProbeMarker(o Options) admission.Handler {
	return kind[v1alpha1.PodProbeMarker, *v1alpha1.PodProbeMarker]{
		hub:      v1alpha1.GroupVersion,
		subject:  func(marker *v1alpha1.PodProbeMarker) any { return marker.Spec },
		disabled: o.disabled("PodProbeMarker", http.StatusForbidden),
		validate: rules[v1alpha1.PodProbeMarker](markerRules).validate,
	}.handler()
}

func markerRules(found *findings, marker *v1alpha1.PodProbeMarker) {
	spec := field.NewPath("spec")
	found.selector(spec.Child("selector"), marker.Spec.Selector)
	for i := range marker.Spec.Probes {
		p, at := &marker.Spec.Probes[i], spec.Child("probes").Index(i)
		for j, policy := range p.MarkerPolicy {
			at := at.Child("markerPolicy").Index(j)
			found.add(metavalidation.ValidateLabels(policy.Labels, at.Child("labels")))
			found.add(apivalidation.ValidateAnnotations(policy.Annotations, at.Child("annotations")))
		}
		probe := at.Child("probe")
		if get := p.Probe.HTTPGet; get != nil {
			found.port(probe.Child("httpGet", "port"), get.Port)
			for j, header := range get.HTTPHeaders {
				at := probe.Child("httpGet", "httpHeaders").Index(j).Child("name")
				found.messages(at, header.Name, validation.IsHTTPHeaderName(header.Name))
			}
		}
		if socket := p.Probe.TCPSocket; socket != nil {
			found.port(probe.Child("tcpSocket", "port"), socket.Port)
		}
	}
}

func (f *findings) port(at *field.Path, port intstr.IntOrString) {
	wrong := validation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		wrong = validation.IsValidPortName(port.StrVal)
	}
	f.messages(at, port.String(), wrong)
}
