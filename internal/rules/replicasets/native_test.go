package replicasets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "1",
			Annotations: map[string]string{"team": "a", RevisionAnnotation: "3", corev1.LastAppliedConfigAnnotation: "{}"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(10)), MinReadySeconds: 5, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v2"}}},
			},
		},
	}
}

func TestMake(t *testing.T) {
	d := deployment()
	others := []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{RevisionAnnotation: "3"}}}}
	rs := Make(d, others, Limits{Replicas: 10, Surge: 3})
	hash := Hash(&d.Spec.Template, nil)
	want := map[string]string{
		"team": "a", RevisionAnnotation: "4", desiredAnnotation: "10", maxAnnotation: "13",
	}
	if diff := cmp.Diff(want, rs.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	labels := map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: hash}
	for name, got := range map[string]map[string]string{"labels": rs.Labels, "selector": rs.Spec.Selector.MatchLabels, "template": rs.Spec.Template.Labels} {
		if diff := cmp.Diff(labels, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if rs.Name != "web-"+hash || *rs.Spec.Replicas != 0 || rs.Spec.MinReadySeconds != 5 || !metav1.IsControlledBy(rs, d) {
		t.Errorf("%s has %d replicas, minReadySeconds %d, owners %v", rs.Name, *rs.Spec.Replicas, rs.Spec.MinReadySeconds, rs.OwnerReferences)
	}
	if New(d, []*appsv1.ReplicaSet{others[0], rs}) != rs {
		t.Error("it is not taken for the ReplicaSet of the template")
	}
	if len(d.Spec.Template.Labels) != 1 || len(d.Spec.Selector.MatchLabels) != 1 {
		t.Error("the Deployment is changed")
	}
	if again := Hash(&d.Spec.Template, ptr.To(int32(1))); again == hash {
		t.Error("a collision gives no other hash")
	}
}

func TestLimitsOf(t *testing.T) {
	amount := func(v any) *intstr.IntOrString {
		switch v := v.(type) {
		case int:
			return ptr.To(intstr.FromInt32(int32(v)))
		case string:
			return ptr.To(intstr.FromString(v))
		}
		return nil
	}
	cases := map[string]struct {
		replicas                      int32
		surge, unavailable, partition any
		want                          Limits
		wantErr                       string
	}{
		"both are 25% where unset":              {10, nil, nil, "50%", Limits{10, 3, 2, 5}, ""},
		"one may be unavailable if both are 0":  {2, "0%", "10%", 1, Limits{2, 0, 1, 1}, ""},
		"maxSurge alone leaves 25% unavailable": {8, 1, nil, "100%", Limits{8, 1, 2, 8}, ""},
		"a percentage leaves one old Pod":       {3, 1, 0, "90%", Limits{3, 1, 0, 2}, ""},
		"a number does not":                     {3, 1, 0, 3, Limits{3, 1, 0, 3}, ""},
		"no Pods":                               {0, 1, 0, "50%", Limits{0, 1, 0, 0}, ""},
		"a bad maxSurge":                        {3, "x", 0, 3, Limits{}, `maxSurge: "x" is neither a number nor a percentage such as "20%"`},
		"a bad partition":                       {3, 1, 0, "x", Limits{}, `partition: "x" is neither a number nor a percentage such as "20%"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := appsv1.DeploymentSpec{Replicas: &tc.replicas}
			spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: amount(tc.surge), MaxUnavailable: amount(tc.unavailable)}
			got, err := LimitsOf(&spec, amount(tc.partition))
			gotErr := ""
			if err != nil {
				gotErr, got = err.Error(), Limits{}
			}
			if diff := cmp.Diff(tc.wantErr, gotErr); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStrategyIsWrittenAsTheOriginalDoes(t *testing.T) {
	s := Strategy{RollingStyle: RollingStyle, Partition: intstr.FromString("50%")}
	if diff := cmp.Diff(`{"rollingStyle":"Partition","partition":"50%"}`, s.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err := Parse(`{"rollingStyle":"Partition","rollingUpdate":{"maxUnavailable":"25%","maxSurge":1},"paused":true,"partition":3}`)
	want := Strategy{
		RollingStyle: RollingStyle, Paused: true, Partition: intstr.FromInt32(3),
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromInt32(1))},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Parse("half"); err == nil {
		t.Error("what is no JSON is read")
	}
}
