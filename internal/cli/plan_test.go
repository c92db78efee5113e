package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/forecast"
)

// web returns a CloneSet of five Pods that are updated in place, two at a time.
func web() *v1beta1.CloneSet {
	labels := map[string]string{"app": "web"}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u", Generation: 1}}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.MinReadySeconds = ptr.To(int32(5)), &metav1.LabelSelector{MatchLabels: labels}, 30
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:v1"}}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, MaxUnavailable: ptr.To(intstr.FromInt32(2)),
	}
	return set
}

// foreseen returns the forecast of a change of a CloneSet whose Pods run on nodes n0 to n4, cut off when it has looked at so many Pods; 0 is
// no limit.
func foreseen(t *testing.T, looks int, change func(*v1beta1.CloneSet)) planned {
	t.Helper()
	set := web()
	w := forecast.NewWorld(noon.Add(-time.Hour), set)
	if _, err := forecast.Run(t.Context(), w, set); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{}
	var pods corev1.PodList
	if err := w.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pods.Items[i].Spec.NodeName = "n" + string(rune('0'+i))
		objects = append(objects, &pods.Items[i])
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	var revisions appsv1.ControllerRevisionList
	if err := w.List(t.Context(), &revisions); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, pointers[appsv1.ControllerRevision](revisions.Items)...)
	change(set)
	set.Generation++
	w = forecast.NewWorld(noon, append(objects, set)...)
	r, err := forecast.RunWithin(t.Context(), w, set, looks)
	if err != nil {
		t.Fatal(err)
	}
	out := planned{Result: r}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.Owner)
	if err != nil {
		t.Fatal(err)
	}
	o := cloneSet(t, "", "")
	if out.End, err = o.Kind.Progress(&unstructured.Unstructured{Object: fields}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPlanScreen(t *testing.T) {
	image := func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "web:v2" }
	for name, tc := range map[string]struct {
		looks  int
		change func(*v1beta1.CloneSet)
		code   int
	}{
		"plan-nothing": {0, func(*v1beta1.CloneSet) {}, exitOK},
		"plan-in-place": {0, func(s *v1beta1.CloneSet) {
			image(s)
			s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(1))
		}, exitOK},
		"plan-cut": {1, image, exitOK},
		"plan-recreate": {0, func(s *v1beta1.CloneSet) {
			image(s)
			s.Spec.Template.Spec.Containers[0].Command = []string{"serve"}
			s.Spec.Replicas = ptr.To(int32(3))
		}, exitOK},
		"plan-paused": {0, func(s *v1beta1.CloneSet) {
			image(s)
			s.Spec.UpdateStrategy.RollingUpdate.Paused = true
		}, exitWaits},
		"plan-held": {0, func(s *v1beta1.CloneSet) {
			image(s)
			s.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"app": "web"}}}
		}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := shown()
			r := foreseen(t, tc.looks, tc.change)
			r.Budgets = []budgetRoom{{"web-pub", 1}}
			p.planText(r)
			golden(t, name, out.String())
			if code := codeOf(r.exit()); code != tc.code {
				t.Errorf("the exit code is %d, want %d", code, tc.code)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		set     []string
		want    string
		refused string
	}{
		"an image and a partition": {[]string{"image=app=web:v2", "partition=30%"}, "{spec: {replicas: 5, template: {spec: {containers: [{name: app, image: 'web:v2'}]}}, updateStrategy: {rollingUpdate: {partition: 30%}}}}", ""},
		"numbers and a pause":      {[]string{"replicas=7", "maxUnavailable=2", "paused=true"}, "{spec: {replicas: 7, template: {spec: {containers: [{name: app, image: 'web:v1'}]}}, updateStrategy: {rollingUpdate: {maxUnavailable: 2, paused: true}}}}", ""},
		"an unknown field":         {[]string{"size=2"}, "", `there is no field "size", use image, replicas, partition, maxUnavailable or paused`},
		"no value":                 {[]string{"partition"}, "", "give FIELD=VALUE"},
		"an image of nothing":      {[]string{"image=web:v2"}, "", "give image=CONTAINER=IMAGE"},
		"a pause that is none":     {[]string{"paused=maybe"}, "", "give true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			o := objectOf(t, "apps.kruise.io", "CloneSet", "{spec: {replicas: 5, template: {spec: {containers: [{name: app, image: 'web:v1'}]}}}}")
			c, err := parseChanges(tc.set)
			if err == nil {
				err = c.apply(o.Kind, o.Unstructured)
			}
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want one about %q", err, tc.refused)
				}
				return
			}
			want := objectOf(t, "apps.kruise.io", "CloneSet", tc.want)
			if d := cmp.Diff(want.Object, o.Object); err != nil || d != "" {
				t.Error(err, d)
			}
		})
	}
}
