package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// TestNoneOld: whether Pods of the revision that a release came from are left is asked of that revision, also once the workload counts the
// new one as its current one, because all of its Pods are updated.
func TestNoneOld(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		current  string
		pods     []string
		want     bool
	}{
		"an old Pod and a new one":                                       {2, "web-old", []string{"old", "new"}, false},
		"scaled down to a new one":                                       {1, "web-old", []string{"new"}, true},
		"scaled down to a new one, which the workload has taken note of": {1, "web-new", []string{"new"}, true},
		"an old one is still there when the workload says that none is":  {2, "web-new", []string{"new", "old"}, false},
		"a Pod is missing, which may come back as an old one":            {2, "web-new", []string{"new"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
			set.Spec.Replicas = ptr.To(tc.replicas)
			set.Status.CurrentRevision, set.Status.UpdateRevision = tc.current, "web-new"
			r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
			r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
			r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{Steps: []v1beta1.Step{{}}}}
			r.Status.CanaryStatus = &v1beta1.CanaryStatus{CommonStatus: v1beta1.CommonStatus{StableRevision: "web-old"}}
			objects := steer.Objects{Workload: set}
			for _, hash := range tc.pods {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
					"pod-template-hash": hash, "controller-revision-hash": "web-" + hash,
				}}}
				objects.Pods = append(objects.Pods, p)
			}
			if got := Classify(Snapshot{Rollout: r, Objects: objects}).facts.NoneOld; got != tc.want {
				t.Errorf("no Pod of the stable revision is left: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestLeft: a workload is let go that only the claim of a BatchRelease of this Rollout's name keeps frozen, once that one is gone.
func TestLeft(t *testing.T) {
	claimedBy := func(name, uid string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", Labels: map[string]string{keys.AdvancedDeployment: "true"},
		}}
		d.Spec.Paused = true
		return steer.Claim(d, metav1.OwnerReference{Name: name, UID: types.UID(uid)}).(*appsv1.Deployment)
	}
	marked := steer.Mark(claimedBy("demo", "1"), "demo").(*appsv1.Deployment)
	for name, tc := range map[string]struct {
		workload *appsv1.Deployment
		batch    types.UID
		want     bool
	}{
		"its BatchRelease is gone":                  {claimedBy("demo", "1"), "", true},
		"another one has come since":                {claimedBy("demo", "1"), "2", true},
		"its BatchRelease is there":                 {claimedBy("demo", "1"), "1", false},
		"a BatchRelease that somebody made by hand": {claimedBy("other", "1"), "", false},
		"the mark of a release is there, too":       {marked, "", false},
		"no release has to do with it":              {&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
			r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
			r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{Steps: []v1beta1.Step{{}}}}
			s := Snapshot{Rollout: r, Objects: steer.Objects{Workload: tc.workload}}
			if tc.batch != "" {
				s.Batch = &v1beta1.BatchRelease{ObjectMeta: metav1.ObjectMeta{UID: tc.batch}}
			}
			if got := Classify(s).facts.Left; got != tc.want {
				t.Errorf("left by a release that is gone: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestTheThresholdOfAnyStyle: how many updated Pods may be not ready is passed on in each style, and none where nothing is said: trap T18.
func TestTheThresholdOfAnyStyle(t *testing.T) {
	for name, threshold := range map[string]*intstr.IntOrString{"a threshold": ptr.To(intstr.FromString("20%")), "none": nil} {
		of := v1beta1.StepsStrategy{Steps: []v1beta1.Step{{Replicas: ptr.To(intstr.FromString("100%"))}}, FailureThreshold: threshold}
		for style, strategy := range map[v1beta1.RollingStyle]v1beta1.RolloutStrategy{
			v1beta1.RollingStylePartition: {Canary: &v1beta1.CanaryStrategy{StepsStrategy: of}},
			v1beta1.RollingStyleCanary:    {Canary: &v1beta1.CanaryStrategy{StepsStrategy: of, EnableExtraWorkloadForCanary: true}},
			v1beta1.RollingStyleBlueGreen: {BlueGreen: &v1beta1.BlueGreenStrategy{StepsStrategy: of}},
		} {
			t.Run(name+" in style "+string(style), func(t *testing.T) {
				r := &v1beta1.Rollout{}
				r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
				r.Spec.Strategy = strategy
				v := Classify(Snapshot{Rollout: r})
				if p := v.releasePlan(); p.RollingStyle != style || p.FailureThreshold != threshold {
					t.Errorf("style %s, threshold %v; want %s and %v", p.RollingStyle, p.FailureThreshold, style, threshold)
				}
			})
		}
	}
}
