package validating

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

func TestTemplateChecker(t *testing.T) {
	path := field.NewPath("template", "spec")
	for name, tc := range map[string]struct {
		answer       *apierrors.StatusError // nil to create
		wantErrors   []string
		wantWarnings []string
	}{
		"a good template": {wantWarnings: []string{"mind this"}},
		"a wrong template": {
			answer: apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", field.ErrorList{
				field.Invalid(path.Child("hostname"), "A B", "no hostname"), field.Required(path.Child("containers"), ""),
				field.NotSupported(path.Child("dnsPolicy"), "x", []string{"Default"}),
			}),
			wantErrors: []string{
				`template.spec.hostname: Invalid value: "A B": no hostname`,
				`template.spec.containers: Required value`,
				`template.spec.dnsPolicy: Unsupported value: "x": supported values: "Default"`,
			},
			wantWarnings: []string{"mind this"},
		},
		"no right to ask": {
			answer:       apierrors.NewForbidden(schema.GroupResource{Resource: "podtemplates"}, "", nil),
			wantWarnings: []string{"mind this", `spec.template was not checked: podtemplates is forbidden: <nil>`},
		},
		"a webhook that can't be asked": {
			answer:       apierrors.NewBadRequest("no dry run here"),
			wantWarnings: []string{"mind this", "spec.template was not checked: no dry run here"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/ns/podtemplates" || r.URL.Query().Get("dryRun") != "All" || r.Method != http.MethodPost {
					t.Errorf("asked %s %s", r.Method, r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Add("Warning", `299 - "mind this"`)
				if tc.answer == nil {
					w.WriteHeader(http.StatusCreated)
					_ = json.NewEncoder(w).Encode(asPodTemplate("ns", nil))
					return
				}
				w.WriteHeader(int(tc.answer.ErrStatus.Code))
				status := tc.answer.ErrStatus
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				_ = json.NewEncoder(w).Encode(&status)
			}))
			defer api.Close()
			checker, err := NewTemplateChecker(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			verdict := checker.Check(t.Context(), "ns", map[string]any{})
			var got []string
			for _, err := range verdict.Errors {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.wantErrors, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, verdict.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
