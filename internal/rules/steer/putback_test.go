package steer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func templateWith(image string, labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}

// holding returns a workload with a template.
func holding(workload Object, template corev1.PodTemplateSpec) Object {
	*TemplateOf(workload) = template
	return workload
}

func TestTheOldTemplateIsPutBack(t *testing.T) {
	app := map[string]string{"app": "web"}
	now := templateWith("app:v2", app)
	revisionOf := func(name string) *appsv1.ControllerRevision {
		raw := `{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:v1"}]}}}}`
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: []byte(raw)}}
	}
	set := func(hash, image string) *appsv1.ReplicaSet {
		const label = appsv1.DefaultDeploymentUniqueLabelKey
		return &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: hash}},
			Spec:       appsv1.ReplicaSetSpec{Template: templateWith(image, map[string]string{"app": "web", label: hash})},
		}
	}
	labelled := func(hash string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.StableRevision: hash}}, Spec: appsv1.DeploymentSpec{Paused: true, Template: now}}
	}
	sets := []*appsv1.ReplicaSet{set("new", "app:v2"), set("old", "app:v1")}
	revisions := []*appsv1.ControllerRevision{revisionOf("web-2"), revisionOf("web-1")}
	for name, tc := range map[string]struct {
		objects Objects
		missing string
	}{
		"a Deployment":                 {Objects{Workload: labelled("old"), ReplicaSets: sets}, ""},
		"a ReplicaSet that is gone":    {Objects{Workload: labelled("older"), ReplicaSets: sets}, `the ReplicaSet of revision "older" is not there any more`},
		"a Deployment without a label": {Objects{Workload: labelled(""), ReplicaSets: append(sets, set("", "app:v0"))}, `the ReplicaSet of revision "" is not`},
		"a CloneSet":                   {Objects{Workload: holding(&v1beta1.CloneSet{}, now), Revisions: revisions}, ""},
		"a StatefulSet":                {Objects{Workload: holding(&v1beta1.StatefulSet{}, now), Revisions: revisions}, ""},
		"a DaemonSet":                  {Objects{Workload: holding(&v1beta1.DaemonSet{}, now), Revisions: revisions}, ""},
		"a native StatefulSet":         {Objects{Workload: holding(&appsv1.StatefulSet{}, now), Revisions: revisions}, ""},
		"a native DaemonSet":           {Objects{Workload: holding(&appsv1.DaemonSet{}, now), Revisions: revisions}, ""},
		"a revision that is gone":      {Objects{Workload: holding(&v1beta1.CloneSet{}, now), Revisions: revisions[:1]}, "the revision web-1 is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.objects.Workload.DeepCopyObject()
			got, err := PutBack(tc.objects, "web-1")
			if tc.missing != "" {
				if err == nil || !strings.Contains(err.Error(), tc.missing) {
					t.Errorf("%v, want %s", err, tc.missing)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(templateWith("app:v1", app), *TemplateOf(got.Workload)); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			*TemplateOf(got.Workload) = now
			if diff := cmp.Diff(before, got.Workload.(runtime.Object)); diff != "" {
				t.Errorf("more than the template is changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.objects.Workload.(runtime.Object)); diff != "" {
				t.Errorf("what was read is changed:\n%s", diff)
			}
		})
	}
}
