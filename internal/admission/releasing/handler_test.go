package releasing

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// web returns a CloneSet of an image, as a Rollout has labelled it.
func web(image string, change ...func(*appsv1beta1.CloneSet)) *appsv1beta1.CloneSet {
	set := &appsv1beta1.CloneSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}}
	set.Name, set.Namespace, set.UID = "web", "ns", "u"
	set.Labels = map[string]string{keys.WorkloadType: "cloneset"}
	set.Spec.Replicas = ptr.To[int32](2)
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	set.Status.UpdateRevision, set.Status.CurrentRevision = "web-v1", "web-v1"
	for _, c := range change {
		c(set)
	}
	return set
}

func rollout(change ...func(*v1beta1.Rollout)) *v1beta1.Rollout {
	one := intstr.FromInt32(1)
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{Steps: []v1beta1.Step{{Replicas: &one}}}}
	for _, c := range change {
		c(r)
	}
	return r
}

func podOf(name, revision string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "u", Controller: ptr.To(true)}}
	return p
}

func TestHandler(t *testing.T) {
	marked := func(s *appsv1beta1.CloneSet) {
		s.Annotations = map[string]string{keys.InProgressing: `{"rolloutName":"demo"}`}
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromString("50%"))}
	}
	routed := func(r *v1beta1.Rollout) {
		r.Spec.Strategy.Canary.TrafficRoutings = []v1beta1.TrafficRoutingRef{{Service: "web"}}
	}
	mixed := []client.Object{podOf("a", "web-v1"), podOf("b", "web-v0")}
	cases := map[string]struct {
		old, new *appsv1beta1.CloneSet
		there    []client.Object
		want     string
		warning  string
	}{
		"a new template is frozen and marked": {web("v1"), web("v2"), []client.Object{rollout()}, "100% marked",
			"in 1 steps; step 1 of 1: 1 of 2 Pods, requests as they come, then waits for an approval"},
		"a further one is frozen again": {web("v1", marked), web("v2", marked), []client.Object{rollout()}, "100% marked", ""},
		"another label is no release": {web("v1"), web("v1", func(s *appsv1beta1.CloneSet) { s.Labels["team"] = "a" }),
			[]client.Object{rollout()}, "", ""},
		"the label of a Deployment's template is no release": {web("v1"), web("v1", func(s *appsv1beta1.CloneSet) {
			s.Spec.Template.Labels = map[string]string{keys.PodTemplateHash: "x"}
		}), []client.Object{rollout()}, "", ""},
		"no Rollout, trap T2":           {web("v1", marked), web("v2", marked), nil, "50% marked", ""},
		"a Rollout of another workload": {web("v1"), web("v2"), []client.Object{rollout(func(r *v1beta1.Rollout) { r.Spec.WorkloadRef.Name = "other" })}, "", ""},
		"a Rollout of another group":    {web("v1"), web("v2"), []client.Object{rollout(func(r *v1beta1.Rollout) { r.Spec.WorkloadRef.APIVersion = "apps/v1" })}, "", ""},
		"a Rollout that is disabled":    {web("v1"), web("v2"), []client.Object{rollout(func(r *v1beta1.Rollout) { r.Spec.Disabled = true })}, "", ""},
		"a Rollout that is being enabled": {web("v1"), web("v2"),
			[]client.Object{rollout(func(r *v1beta1.Rollout) { r.Status.Phase = v1beta1.RolloutPhaseDisabled })}, "", ""},
		"a Rollout on its way out": {web("v1"), web("v2"), []client.Object{rollout(func(r *v1beta1.Rollout) {
			r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"x/y"}
		})}, "", ""},
		"no Pods": {web("v1"), web("v2", func(s *appsv1beta1.CloneSet) { s.Spec.Replicas = ptr.To[int32](0) }),
			[]client.Object{rollout()}, "", "it has no Pods"},
		"Pods of two revisions and traffic, trap T6": {web("v1"), web("v2"), append(mixed, rollout(routed)), "", "more than one revision"},
		"Pods of two revisions without traffic":      {web("v1"), web("v2"), append(mixed, rollout()), "100% marked", ""},
		"a new name of the release": {web("v1", func(s *appsv1beta1.CloneSet) { s.Labels[keys.RolloutID] = "1" }),
			web("v2", func(s *appsv1beta1.CloneSet) { s.Labels[keys.RolloutID] = "2" }), []client.Object{rollout()}, "100% marked", ""},
		"the same name of the release": {web("v1", func(s *appsv1beta1.CloneSet) { s.Labels[keys.RolloutID] = "1" }),
			web("v2", func(s *appsv1beta1.CloneSet) { s.Labels[keys.RolloutID] = "1" }), []client.Object{rollout()}, "", ""},
		"a replaced object keeps its marks, trap T26": {web("v2", marked), web("v2", func(s *appsv1beta1.CloneSet) { s.Labels = nil }),
			[]client.Object{rollout()}, "50% marked", ""},
		"the end of a release":  {web("v2", marked), web("v2"), []client.Object{rollout()}, "", ""},
		"an object without UID": {web("v1"), web("v2", func(s *appsv1beta1.CloneSet) { s.UID = "" }), append(mixed, rollout(routed)), "", "more than one revision"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, warnings := ask(t, tc.old, tc.new, tc.there)
			var is []string
			if rolling := got.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
				is = append(is, rolling.Partition.String())
			}
			if got.Annotations[keys.InProgressing] == `{"rolloutName":"demo"}` {
				is = append(is, "marked")
			}
			if text := strings.Join(is, " "); text != tc.want {
				t.Errorf("it is stored as %q, want %q", text, tc.want)
			}
			if text := strings.Join(warnings, " "); !strings.Contains(text, tc.warning) {
				t.Errorf("warnings %q, want %q in them", text, tc.warning)
			}
		})
	}
}

// ask returns what an update is stored as.
func ask(t *testing.T, old, now *appsv1beta1.CloneSet, there []client.Object) (*appsv1beta1.CloneSet, []string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, appsv1beta1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).Build()
	handler := Handler(Options{Live: reader, Cached: observe.Reader{Reader: reader}, Now: time.Now})
	before, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	answer := handler.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"}, Operation: admissionv1.Update,
		Name: "web", Namespace: "ns", Object: runtime.RawExtension{Raw: after}, OldObject: runtime.RawExtension{Raw: before},
	}})
	if !answer.Allowed {
		t.Fatalf("it is refused: %v", answer.Result)
	}
	if len(answer.Patches) > 0 {
		operations, err := json.Marshal(answer.Patches)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		if after, err = decoded.Apply(after); err != nil {
			t.Fatalf("applying %s: %v", operations, err)
		}
	}
	var stored appsv1beta1.CloneSet
	if err := json.Unmarshal(after, &stored); err != nil {
		t.Fatal(err)
	}
	return &stored, answer.Warnings
}
