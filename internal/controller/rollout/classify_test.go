package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
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
