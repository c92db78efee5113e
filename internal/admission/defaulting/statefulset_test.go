package defaulting

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// TestPullPoliciesAreTakenOver: a container that does not say how to pull its image does so as it did under the StatefulSet of Kubernetes.
func TestPullPoliciesAreTakenOver(t *testing.T) {
	left := func(name, owner string, number int64, policy string) *appsv1.ControllerRevision {
		yes := true
		rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "web"}}, Revision: number}
		rev.Data.Raw = []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"nginx:1","imagePullPolicy":"` + policy + `"}]},"$patch":"replace"}}}`)
		if owner != "" {
			rev.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: "uid", Controller: &yes}}
		}
		return rev
	}
	for name, tc := range map[string]struct {
		revisions []runtime.Object
		container string
		want      string
	}{
		"nothing was left behind": {container: `{"name":"app","image":"nginx:1"}`, want: "Always"},
		"the newest that was left behind": {
			revisions: []runtime.Object{left("web-1", "", 1, "Never"), left("web-2", "", 2, "IfNotPresent")},
			container: `{"name":"app","image":"nginx:1"}`, want: "IfNotPresent",
		},
		"the user says otherwise": {
			revisions: []runtime.Object{left("web-1", "", 1, "Never")}, container: `{"name":"app","image":"nginx:1","imagePullPolicy":"Always"}`, want: "Always",
		},
		"another image": {revisions: []runtime.Object{left("web-1", "", 1, "Never")}, container: `{"name":"app","image":"nginx:2"}`, want: "Always"},
		"what is about to be left behind": {
			revisions: []runtime.Object{left("web-1", "web", 1, "Never")}, container: `{"name":"app","image":"nginx:1"}`, want: "Never",
		},
		"what another one controls was not left behind": {
			revisions: []runtime.Object{left("web-1", "shop", 1, "Never")}, container: `{"name":"app","image":"nginx:1"}`, want: "Always",
		},
		"what belongs to another name": {revisions: []runtime.Object{left("shop-1", "", 1, "Never")}, container: `{"name":"app","image":"nginx:1"}`, want: "Always"},
	} {
		t.Run(name, func(t *testing.T) {
			object := []byte(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"StatefulSet","metadata":{"name":"web","namespace":"ns"},"spec":{"selector":{"matchLabels":{"app":"web"}},
				"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[` + tc.container + `]}}}}`)
			request := admissionv1.AdmissionRequest{
				UID: "1", Name: "web", Namespace: "ns", Operation: admissionv1.Create,
				Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
				Object: runtime.RawExtension{Raw: object},
			}
			hook := &webhook.Admission{Handler: StatefulSet(StatefulSetOptions{Revisions: fake.NewClientBuilder().WithRuntimeObjects(tc.revisions...).Build()})}
			response := hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
			if !response.Allowed {
				t.Fatalf("answered %v", response.Result)
			}
			encoded, err := json.Marshal(response.Patches)
			if err != nil {
				t.Fatal(err)
			}
			got := "Always" // as the object says already
			for _, patch := range response.Patches {
				if patch.Path == "/spec/template/spec/containers" {
					got, _ = patch.Value.([]any)[0].(map[string]any)["imagePullPolicy"].(string)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("imagePullPolicy (-want +got):\n%s\n%s", diff, encoded)
			}
		})
	}
}
