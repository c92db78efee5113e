package releasing

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// TestAWorkloadThatIsOnlyLikeAStatefulSet is frozen by its partition, where the manager lets workloads be of any kind, and nowhere else.
func TestAWorkloadThatIsOnlyLikeAStatefulSet(t *testing.T) {
	manifest := func(image, strategy string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion": "example.com/v1", "kind": "RankSet",
			"metadata": {"name": "web", "namespace": "ns", "uid": "u", "labels": {"rollouts.kruise.io/workload-type": "statefulset"}},
			"spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "updateStrategy": ` + strategy + `,
				"template": {"spec": {"containers": [{"name": "main", "image": "` + image + `"}]}}},
			"status": {"currentRevision": "web-1", "updateRevision": "web-1"}}`)}
	}
	const rolling = `{"rollingUpdate": {"partition": 0}}`
	for name, tc := range map[string]struct {
		image, strategy string
		anyKind         bool
		frozen          bool
		warning         string
	}{
		"a new template":                         {"web:v2", rolling, true, true, "step 1 of 1: 1 of 4 Pods"},
		"no new template":                        {"web:v1", rolling, true, false, ""},
		"a manager that filters kinds":           {"web:v2", rolling, false, false, ""},
		"no partition, which nothing would stop": {"web:v2", `{}`, true, false, "partition is not there"},
		"OnDelete":                               {"web:v2", `{"type": "OnDelete", "rollingUpdate": {"partition": 0}}`, true, false, "OnDelete"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			of := rollout(func(r *v1beta1.Rollout) {
				r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "example.com/v1", Kind: "RankSet", Name: "web"}
			})
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(of).Build()
			handler := Handler(Options{Live: reader, Cached: observe.Reader{Reader: reader}, Now: time.Now, AnyKind: tc.anyKind})
			answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "RankSet"}, Operation: admissionv1.Update,
				Name: "web", Namespace: "ns", Object: manifest(tc.image, tc.strategy), OldObject: manifest("web:v1", tc.strategy),
			}})
			text, err := json.Marshal(answer.Patches)
			if err != nil || !answer.Allowed {
				t.Fatalf("%v, %+v", err, answer.Result)
			}
			if is := strings.Contains(string(text), "32767") && strings.Contains(string(text), "in-progressing"); is != tc.frozen {
				t.Errorf("it is frozen: %t, by %s", is, text)
			}
			if got := strings.Join(answer.Warnings, " "); !strings.Contains(got, tc.warning) || tc.warning == "" && got != "" {
				t.Errorf("warnings %q, want %q in them", got, tc.warning)
			}
		})
	}
}
