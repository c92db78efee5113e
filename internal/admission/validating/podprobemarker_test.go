package validating

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// TestPodProbeMarkersThatNobodyWouldRun: with a gate closed no marker is taken, and none that is there is held up on its way out.
func TestPodProbeMarkersThatNobodyWouldRun(t *testing.T) {
	const spec = `{"selector":{"matchLabels":{"a":"b"}},"probes":[{"name":"a","containerName":"c","podConditionType":"d","probe":{"exec":{"command":["a"]}}}]}`
	other := strings.Replace(spec, `"name":"a"`, `"name":"b"`, 1)
	for name, tc := range map[string]struct {
		gate, metadata, spec, old string
		refused                   bool
	}{
		"all gates are open":       {spec: spec},
		"one is closed":            {gate: "PodProbeMarkerGate", spec: spec, refused: true},
		"a change":                 {gate: "KruiseDaemon", spec: other, old: spec, refused: true},
		"a finalizer comes off":    {gate: "KruiseDaemon", spec: spec, old: spec},
		"one that is on its way":   {gate: "KruiseDaemon", metadata: `,"deletionTimestamp":"2026-01-02T03:04:05Z"`, spec: other, old: spec},
		"a change with gates open": {spec: other, old: spec},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(spec string) runtime.RawExtension {
				return runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"PodProbeMarker","metadata":{"name":"x","namespace":"ns"` + tc.metadata + `},"spec":` + spec + `}`)}
			}
			asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "PodProbeMarker"}, Name: "x", Object: object(tc.spec),
			}}
			if tc.old != "" {
				asked.Operation, asked.OldObject = admissionv1.Update, object(tc.old)
			}
			var o Options
			if tc.gate != "" {
				o.Disabled = map[string]string{"PodProbeMarker": "feature-gate " + tc.gate + " is not enabled"}
			}
			got := PodProbeMarker(o).Handle(t.Context(), asked)
			if got.Allowed == tc.refused {
				t.Fatalf("allowed is %t: %+v", got.Allowed, got.Result)
			}
			if tc.refused && (got.Result.Code != http.StatusForbidden || got.Result.Message != "feature-gate "+tc.gate+" is not enabled") {
				t.Errorf("refused with %d: %s", got.Result.Code, got.Result.Message)
			}
		})
	}
}
