package defaulting

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestNodeImage(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const head, tail = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"NodeImage","metadata":{"name":"n"},"spec":`, `}`
	for name, tc := range map[string]struct{ spec, want string }{
		"no images":                  {`{}`, `{}`},
		"what is complete is left":   {`{"images":{"a/b":{"tags":[{"tag":"1","createdAt":"2020-01-01T00:00:00Z"}]}}}`, `{"images":{"a/b":{"tags":[{"tag":"1","createdAt":"2020-01-01T00:00:00Z"}]}}}`},
		"a time that is missing":     {`{"images":{"a/b":{"tags":[{"tag":"1","later":7}]}}}`, `{"images":{"a/b":{"tags":[{"tag":"1","later":7,"createdAt":"2026-01-02T03:04:05Z"}]}}}`},
		"tags that are not in order": {`{"images":{"b":{"tags":[{"tag":"2","createdAt":"2020-01-01T00:00:00Z"},{"tag":"1","createdAt":"2020-01-01T00:00:00Z"}]},"a":{}}}`, `{"images":{"a":{},"b":{"tags":[{"tag":"1","createdAt":"2020-01-01T00:00:00Z"},{"tag":"2","createdAt":"2020-01-01T00:00:00Z"}]}}}`},
		"what the schema refuses":    {`{"images":{"b":{"tags":7}}}`, `{"images":{"b":{"tags":7}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte(head + tc.spec + tail)
			got := NodeImage(func() time.Time { return now }).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			}})
			if !got.Allowed {
				t.Fatalf("refused: %v", got.Result)
			}
			encoded, err := json.Marshal(got.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Patches) > 0 {
				operations, err := jsonpatch.DecodePatch(encoded)
				if err != nil {
					t.Fatal(err)
				}
				if raw, err = operations.Apply(raw); err != nil {
					t.Fatal(err)
				}
			}
			var after, want any
			if err := json.Unmarshal(raw, &after); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(head+tc.want+tail), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
