package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1alpha1 "github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/podbudget"
	"github.com/seed-69ecc383/kruise/internal/admission/protection"
	"github.com/seed-69ecc383/kruise/internal/admission/recreate"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/disruption"
)

// entries are the handlers of admission by their paths.
type entries map[string]ctrladmission.Handler

func (e entries) Register(path string, hook http.Handler) {
	if admission, ok := hook.(*webhook.Admission); ok {
		e[path] = admission.Handler
	}
}

// agreeable finds no fault with any template.
type agreeable struct{}

func (agreeable) Check(context.Context, string, map[string]any) validating.Verdict {
	return validating.Verdict{}
}

// lenient permits whatever is done to Pods.
type lenient struct{}

func (lenient) Evaluate(context.Context, disruption.Request) (disruption.Decision, error) {
	return disruption.Decision{}, nil
}

// allEntries returns every handler, with all gates open, in a cluster of one node and of one Pod that runs there.
func allEntries(t testing.TB) entries {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
		policyv1alpha1.AddToScheme, policyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "u"}}
	p.Spec.NodeName = "n"
	p.Status.Phase = corev1.PodRunning
	for _, name := range []string{"proxy", "app"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + name})
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).Build()
	out := entries{}
	Register(out, Options{
		Revisions:         live,
		Budgets:           podbudget.Options{Evaluator: lenient{}, Live: live, Deletes: true, Updates: true},
		Protection:        protection.Options{Enabled: true, Live: live, Contents: true, CRDs: true},
		ContainerRecreate: recreate.Options{Live: live},
		Validation: validating.Options{
			Live: live, Templates: agreeable{}, Namespace: "kruise-system", ClaimResize: true,
		},
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	return out
}

// examples returns the examples as JSON, by kind in lower case.
func examples(t testing.TB) map[string][][]byte {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d examples: %v", len(files), err)
	}
	out := map[string][][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			raw, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatalf("reading %s: %v", file, err)
			}
			var header metav1.TypeMeta
			if err := json.Unmarshal(raw, &header); err != nil {
				t.Fatalf("reading %s: %v", file, err)
			}
			kind := strings.ToLower(header.Kind)
			out[kind] = append(out[kind], raw)
		}
	}
	return out
}

// FuzzEntries asks every entry of admission about any object. None panics or fails as a server does; what a patch makes of an object needs
// no
// further change.
func FuzzEntries(f *testing.F) {
	all := allEntries(f)
	paths := slices.Sorted(maps.Keys(all))
	operations := []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	known := examples(f)
	for i, path := range paths {
		for _, raw := range known[path[strings.LastIndex(path, "-")+1:]] {
			older := bytes.ReplaceAll(raw, []byte("apps.kruise.io/v1beta1"), []byte("apps.kruise.io/v1alpha1"))
			for _, object := range [][]byte{raw, older} {
				f.Add(uint8(i), uint8(0), object, []byte{})
				f.Add(uint8(i), uint8(1), object, raw)
				f.Add(uint8(i), uint8(2), []byte{}, object)
			}
		}
	}
	f.Fuzz(func(t *testing.T, entry, operation uint8, object, old []byte) {
		path := paths[int(entry)%len(paths)]
		asked := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: operations[int(operation)%len(operations)], Namespace: "ns", Name: "web",
			Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
		}}
		response := all[path].Handle(t.Context(), asked)
		if !response.Allowed {
			if response.Result.Code >= http.StatusInternalServerError {
				t.Fatalf("%s answered %v", path, response.Result)
			}
			return
		}
		once := apply(t, response, object)
		asked.Object.Raw = once
		if strings.HasSuffix(path, "-containerrecreaterequest") { // what is filled in can't be given; written again it can be
			asked.Operation, asked.OldObject.Raw = admissionv1.Update, once
		}
		again := all[path].Handle(t.Context(), asked)
		if !again.Allowed {
			t.Fatalf("%s refuses what it has made of\n%s\nwhich is\n%s: %v", path, object, once, again.Result)
		}
		if diff := cmp.Diff(decoded(t, once), decoded(t, apply(t, again, once))); diff != "" {
			t.Errorf("%s changes again what it has made of\n%s (-once +twice):\n%s", path, object, diff)
		}
	})
}

// apply returns what the API server makes of an object by an answer.
func apply(t *testing.T, response ctrladmission.Response, object []byte) []byte {
	t.Helper()
	if len(response.Patch) == 0 {
		return object
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("applying %s to %s: %v", response.Patch, object, err)
	}
	return out
}

func decoded(t *testing.T, object []byte) any {
	t.Helper()
	if len(object) == 0 {
		return nil
	}
	var out any
	if err := json.Unmarshal(object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
