package validating

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// base is a valid CloneSet, defaulted, in each version.
const (
	base = `
metadata: {name: web, namespace: ns, uid: web-uid}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "nginx:1"}]}
`
	hub = `apiVersion: apps.kruise.io/v1beta1
kind: CloneSet` + base + `  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`
	older = `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet` + base + `  updateStrategy: {type: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}`
)

// edit returns a version of the object in which the fields at paths, "a.b.c", have the given values, as YAML; "~" removes one.
func edit(t testing.TB, object string, fields map[string]string) []byte {
	t.Helper()
	var root map[string]any
	if err := yaml.Unmarshal([]byte(object), &root); err != nil {
		t.Fatal(err)
	}
	for path, text := range fields {
		steps := strings.Split(path, ".")
		parent := root
		for _, step := range steps[:len(steps)-1] {
			next, ok := parent[step].(map[string]any)
			if !ok {
				next = map[string]any{}
				parent[step] = next
			}
			parent = next
		}
		last := steps[len(steps)-1]
		if text == "~" {
			delete(parent, last)
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		parent[last] = value
	}
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type edits = map[string]string

// ask sends a request as the API server does. A nil old creates, a nil object deletes.
func ask(o Options, object, old []byte) admission.Response {
	request := admissionv1.AdmissionRequest{
		UID: "1", Name: "web", Namespace: "ns", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	switch {
	case object == nil:
		request.Operation = admissionv1.Delete
	case old != nil:
		request.Operation = admissionv1.Update
	}
	hook := &webhook.Admission{Handler: CloneSet(o)}
	return hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
}

func options(t testing.TB) Options {
	t.Helper()
	pod := func(name, owner string, finalizers ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Finalizers: finalizers}}
		if owner != "" {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: owner, UID: "web-uid", Controller: &yes}}
			if owner != "web" {
				p.OwnerReferences[0].UID = "other-uid"
			}
		}
		return p
	}
	going := pod("web-going", "web", "example.com/held")
	reader := fake.NewClientBuilder().WithObjects(pod("web-1", "web"), pod("other-1", "other"), pod("nobodys", ""), going).Build()
	if err := reader.Delete(context.Background(), going); err != nil {
		t.Fatal(err)
	}
	return Options{Live: reader}
}

// causes returns the fields and texts of an answer: "allowed", or one line for each cause.
func causes(response admission.Response) []string {
	if response.Allowed {
		return []string{"allowed"}
	}
	if response.Result.Details == nil {
		return []string{response.Result.Message}
	}
	if response.Result.Code != http.StatusUnprocessableEntity {
		return []string{response.Result.String()}
	}
	var out []string
	for _, cause := range response.Result.Details.Causes {
		out = append(out, cause.Field+": "+cause.Message)
	}
	slices.Sort(out)
	return out
}
