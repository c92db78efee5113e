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

func TestImageJobs(t *testing.T) {
	const jobsOff, daemonOff = "feature-gate ImagePullJobGate is not enabled", "feature-gate KruiseDaemon is not enabled"
	var open Options
	noJobs := Options{Disabled: map[string]string{"ImagePullJob": jobsOff, "ImageListPullJob": jobsOff}}
	noDaemon := Options{Disabled: map[string]string{"ImagePullJob": daemonOff, "NodeImage": daemonOff}}
	const spec, other = `{"image":"nginx:1"}`, `{"image":"nginx:2"}`
	for name, tc := range map[string]struct {
		options   Options
		kind      string
		metadata  string // further metadata of the object
		spec, old string
		code      int32 // 0 for allowed
		says      string
	}{
		"a good job":                               {options: open, spec: spec},
		"a job without daemons":                    {options: noDaemon, spec: spec, code: http.StatusForbidden, says: "feature-gate KruiseDaemon is not enabled"},
		"a job that nobody would look after":       {options: noJobs, spec: spec, code: http.StatusForbidden, says: "feature-gate ImagePullJobGate is not enabled"},
		"a list that nobody would look after":      {options: noJobs, kind: "ImageListPullJob", spec: `{"images":["a"]}`, code: http.StatusForbidden, says: "feature-gate ImagePullJobGate is not enabled"},
		"a finalizer comes off, gate or not":       {options: noJobs, spec: spec, old: spec},
		"a job on its way out may change":          {options: noJobs, metadata: `,"deletionTimestamp":"2026-01-02T03:04:05Z"`, spec: other, old: spec},
		"a change, with the gate closed":           {options: noJobs, spec: other, old: spec, code: http.StatusForbidden, says: "feature-gate ImagePullJobGate is not enabled"},
		"a change to something wrong":              {options: open, spec: `{"image":"A"}`, old: spec, code: http.StatusUnprocessableEntity, says: "spec.image: Invalid value: \"A\": invalid image A: "},
		"what was stored before the rule can stay": {options: open, spec: `{"image":"A"}`, old: `{"image":"A"}`},
		"no image":                          {options: open, spec: `{}`, code: http.StatusUnprocessableEntity, says: "image can not be empty"},
		"a list with an image twice":        {options: open, kind: "ImageListPullJob", spec: `{"images":["a","b","a"]}`, code: http.StatusUnprocessableEntity, says: "spec.images[2]: Invalid value: \"a\": images cannot have duplicate values"},
		"a list with something wrong":       {options: open, kind: "ImageListPullJob", spec: `{"images":["a","B"]}`, code: http.StatusUnprocessableEntity, says: "spec.images[1]: Invalid value: \"B\": invalid image B: "},
		"a selector that can't be read":     {options: open, spec: `{"image":"a","selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`, code: http.StatusUnprocessableEntity, says: "spec.selector: Invalid value"},
		"a NodeImage":                       {options: noJobs, kind: "NodeImage", spec: `{}`},
		"a NodeImage without daemons":       {options: noDaemon, kind: "NodeImage", spec: `{}`, code: http.StatusForbidden, says: "feature-gate KruiseDaemon is not enabled"},
		"a NodeImage that was there before": {options: noDaemon, kind: "NodeImage", spec: `{}`, old: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			kind, handler := "ImagePullJob", ImagePullJob(tc.options)
			switch tc.kind {
			case "ImageListPullJob":
				kind, handler = tc.kind, ImageListPullJob(tc.options)
			case "NodeImage":
				kind, handler = tc.kind, NodeImage(tc.options)
			}
			object := func(spec string) runtime.RawExtension {
				return runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"` + kind + `","metadata":{"name":"x","namespace":"ns"` + tc.metadata + `},"spec":` + spec + `}`)}
			}
			asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: kind}, Name: "x", Object: object(tc.spec),
			}}
			if tc.old != "" {
				asked.Operation, asked.OldObject = admissionv1.Update, object(tc.old)
			}
			got := handler.Handle(t.Context(), asked)
			switch {
			case got.Allowed != (tc.code == 0):
				t.Errorf("allowed is %t: %+v", got.Allowed, got.Result)
			case !got.Allowed && (got.Result.Code != tc.code || !strings.Contains(got.Result.Message, tc.says)):
				t.Errorf("refused with %d: %s, want %d: %s", got.Result.Code, got.Result.Message, tc.code, tc.says)
			}
		})
	}
}
