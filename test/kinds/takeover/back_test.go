package takeover

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestGoingBack has our manager end an update that the original began, begin another one and a creation of its own, and stop in the middle: what it leaves has the form
// of what the original left at the same points, recorded on a live cluster.
func TestGoingBack(t *testing.T) {
	w := newWorld(t, "midway.json")
	before, after := recorded(t, "midway.json"), recorded(t, "after.json")
	manager, err := w.StartManager(w.Ctx, cluster.ManagerOptions{Dir: filepath.Join(w.Dir, "manager")})
	w.Must(err)
	defer manager.Stop()
	w.gracefulIsUpdated()
	for name, theirs := range after {
		if strings.HasPrefix(name, "Pod graceful-") {
			w.hasFormOf(name+" after the update", w.stored("v1", "Pod", strings.TrimPrefix(name, "Pod ")), theirs)
		}
	}
	w.statusHasFormOf(after["CloneSet graceful"])

	w.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var set v1beta1.CloneSet
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "graceful"}, &set); err != nil {
			return err
		}
		six := int32(6)
		set.Spec.Replicas, set.Spec.Template.Spec.Containers[0].Image = &six, "nginx:1.29"
		return w.Client.Update(w.Ctx, &set)
	}))
	var midway, created *unstructured.Unstructured
	w.Eventually("a Pod is within its grace period, and there is a new one", func() error {
		midway, created = nil, nil
		for _, p := range w.pods() {
			name := "Pod " + p.Name
			switch _, known := before[name]; {
			case !strings.HasPrefix(p.Name, "graceful-"):
			case !known:
				created = w.stored("v1", "Pod", p.Name)
			case pod.State(&p) == "Updating":
				midway = w.stored("v1", "Pod", p.Name)
			}
		}
		if midway == nil || created == nil {
			return fmt.Errorf("midway is %v, new is %v", midway != nil, created != nil)
		}
		return nil
	})
	manager.Stop()
	w.hasFormOf("a Pod within its grace period", midway, before["Pod graceful-dx49s"])
	w.hasFormOf("a new Pod", created, withoutKubelet(before["Pod graceful-77v5z"]))
	w.revisionsHaveFormOf(withoutApplied(before["ControllerRevision graceful-6c9c6bc44f"]))
	w.keepsNames()
	if t.Failed() {
		t.Log(manager.Tail(40))
	}
}

// gracefulIsUpdated waits until the CloneSet that the original was updating in place is at its newest template.
func (w *world) gracefulIsUpdated() {
	w.Helper()
	w.Eventually("every Pod of graceful is updated in place and in service", func() error {
		w.playKubelet()
		for _, p := range w.pods() {
			if strings.HasPrefix(p.Name, "graceful-") && (p.Spec.Containers[0].Image != "nginx:mainline" || !pod.IsReady(&p) || pod.State(&p) != "Normal") {
				return fmt.Errorf("Pod %s runs %s in state %s, ready %v", p.Name, p.Spec.Containers[0].Image, pod.State(&p), pod.IsReady(&p))
			}
		}
		return nil
	})
}

// recorded returns the objects of a file, by kind and name.
func recorded(t *testing.T, file string) map[string]*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []*unstructured.Unstructured `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, o := range list.Items {
		out[o.GetKind()+" "+o.GetName()] = o
	}
	return out
}

func (w *world) stored(apiVersion, kind, name string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, o))
	return o
}

// form is what a controller knows an object by, and goes on from.
type form struct {
	Labels, Owners, Finalizers []string
	// Annotations are the fields of those that hold JSON, with the types of their values; of others just that they are there.
	Annotations map[string]any
	Images      []string
	// Conditions are gates of readiness with their state, and conditions that the API does not know.
	Gates []string
}

// formOf returns the form of an object. Keys of its labels count, and those values that are no hash.
func formOf(o *unstructured.Unstructured) form {
	f := form{Finalizers: o.GetFinalizers(), Annotations: map[string]any{}}
	for key, value := range o.GetLabels() {
		switch key {
		case "controller-revision-hash", "pod-template-hash", "controller.kubernetes.io/hash", "apps.kruise.io/cloneset-instance-id":
			value = fmt.Sprintf("a hash, of which the name ends: %t", strings.HasSuffix(o.GetName(), value))
		}
		f.Labels = append(f.Labels, key+"="+value)
	}
	slices.Sort(f.Labels)
	for _, r := range o.GetOwnerReferences() {
		f.Owners = append(f.Owners, fmt.Sprintf("%s %s %s, controller %t, blocks %t", r.APIVersion, r.Kind, r.Name, *r.Controller, *r.BlockOwnerDeletion))
	}
	for key, text := range o.GetAnnotations() {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			value = text
		}
		if key == "apps.kruise.io/inplace-update-state" {
			withoutOurs(value)
		}
		f.Annotations[key] = shapeOf(value)
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
	for _, c := range containers {
		f.Images = append(f.Images, fmt.Sprint(c.(map[string]any)["image"]))
	}
	conditions := map[string]string{}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		conditions[fmt.Sprint(c.(map[string]any)["type"])] = fmt.Sprint(c.(map[string]any)["status"])
	}
	gates, _, _ := unstructured.NestedSlice(o.Object, "spec", "readinessGates")
	for _, g := range gates {
		name := fmt.Sprint(g.(map[string]any)["conditionType"])
		f.Gates = append(f.Gates, name+"="+conditions[name])
	}
	return f
}

// withoutOurs takes off the record of an update in place what only we note about a container, and the original reads over: its ID and its image.
func withoutOurs(record any) {
	containers, _, _ := unstructured.NestedMap(map[string]any{"record": record}, "record", "lastContainerStatuses")
	for name := range containers {
		noted := record.(map[string]any)["lastContainerStatuses"].(map[string]any)[name].(map[string]any)
		delete(noted, "containerID")
		delete(noted, "image")
	}
}

// shapeOf returns a value with the types of its parts in their place. Times are a type of their own.
func shapeOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, part := range value {
			out[key] = shapeOf(part)
		}
		return out
	case []any:
		out := []any{}
		for _, part := range value {
			out = append(out, shapeOf(part))
		}
		return out
	case string:
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			return "time"
		}
	}
	return fmt.Sprintf("%T", value)
}

func (w *world) hasFormOf(what string, ours, theirs *unstructured.Unstructured) {
	w.Helper()
	want, got := formOf(theirs), formOf(ours)
	if what == "a Pod within its grace period" || what == "a new Pod" {
		want.Images, got.Images = nil, nil // of other templates
	}
	if what == "a new Pod" { // whose gates our manager may have opened by now
		want.Gates, got.Gates = namesOf(want.Gates), namesOf(got.Gates)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s, %s, has not the form of the original (-original +ours):\n%s", what, ours.GetName(), diff)
	}
}

// namesOf returns what is before the equals sign of each.
func namesOf(all []string) []string {
	var out []string
	for _, one := range all {
		name, _, _ := strings.Cut(one, "=")
		out = append(out, name)
	}
	return out
}

// withoutKubelet returns a Pod as it was when it was made: before a node had it, and its daemon.
func withoutKubelet(recorded *unstructured.Unstructured) *unstructured.Unstructured {
	o := recorded.DeepCopy()
	annotations, labels := o.GetAnnotations(), o.GetLabels()
	delete(annotations, "apps.kruise.io/runtime-containers-meta")
	o.SetAnnotations(annotations)
	labels["lifecycle.apps.kruise.io/state"] = "PreparingNormal"
	o.SetLabels(labels)
	unstructured.RemoveNestedField(o.Object, "status", "conditions")
	return o
}

// withoutApplied returns a revision without what kubectl had noted on its set, which the original copies and no controller reads.
func withoutApplied(recorded *unstructured.Unstructured) *unstructured.Unstructured {
	o := recorded.DeepCopy()
	annotations := o.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	o.SetAnnotations(annotations)
	return o
}

// statusHasFormOf checks that the status of the CloneSet has the fields that the original writes, and the same counts and revisions.
func (w *world) statusHasFormOf(theirs *unstructured.Unstructured) {
	w.Helper()
	without := func(o *unstructured.Unstructured) map[string]any {
		status, _, err := unstructured.NestedMap(o.Object, "status")
		w.Must(err)
		status = maps.Clone(status)
		delete(status, "conditions")         // of other moments
		delete(status, "observedGeneration") // the object was created anew since
		return status
	}
	w.Eventually("the status is that of the original", func() error {
		ours := w.stored("apps.kruise.io/v1beta1", "CloneSet", theirs.GetName())
		if diff := cmp.Diff(without(theirs), without(ours)); diff != "" {
			return fmt.Errorf("(-original +ours)\n%s", diff)
		}
		if len(ours.GetFinalizers()) > 0 {
			return fmt.Errorf("it has finalizers %v, which nobody takes off any more", ours.GetFinalizers())
		}
		return nil
	})
}

// revisionsHaveFormOf checks the revision that our manager has made.
func (w *world) revisionsHaveFormOf(theirs *unstructured.Unstructured) {
	w.Helper()
	var set v1beta1.CloneSet
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "graceful"}, &set))
	ours := w.stored("apps/v1", "ControllerRevision", set.Status.UpdateRevision)
	w.hasFormOf("a revision", ours, theirs)
	if diff := cmp.Diff(shapeOf(theirs.Object["data"]), shapeOf(ours.Object["data"])); diff != "" {
		w.Errorf("revision %s has other data than the original's (-original +ours):\n%s", ours.GetName(), diff)
	}
}

// keepsNames checks that all that a manager keeps in a cluster for itself has the names by which the original looks for it.
func (w *world) keepsNames() {
	w.Helper()
	for _, o := range []client.Object{
		&coordinationv1.Lease{}, &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{},
	} {
		key := map[string]client.ObjectKey{
			"*v1.Lease":                          {Namespace: "kruise-system", Name: "kruise-manager"},
			"*v1.MutatingWebhookConfiguration":   {Name: "kruise-mutating-webhook-configuration"},
			"*v1.ValidatingWebhookConfiguration": {Name: "kruise-validating-webhook-configuration"},
		}[fmt.Sprintf("%T", o)]
		if err := w.Client.Get(w.Ctx, key, o); err != nil {
			w.Errorf("the original looks for %T %s: %v", o, key, err)
		}
	}
	var lists corev1.PodList
	w.Must(w.Client.List(w.Ctx, &lists))
	for i := range lists.Items {
		if held := lists.Items[i].Finalizers; len(held) > 0 {
			w.Errorf("Pod %s has finalizers %v, which nobody takes off any more", lists.Items[i].Name, held)
		}
	}
}
