package batchrelease

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// TestABatchThatIsReadyStaysReady while somebody else writes to the workload, whose status is then late for moments. It does not where what
// the batch wants has changed.
func TestABatchThatIsReadyStaysReady(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.BatchRelease, *appsv1.Deployment)
		want   v1beta1.BatchState
	}{
		"an annotation of the Deployment has changed": {func(*v1beta1.BatchRelease, *appsv1.Deployment) {}, v1beta1.BatchStateReady},
		"it has been scaled": {func(_ *v1beta1.BatchRelease, d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To[int32](20)
		}, v1beta1.BatchStateUpgrading},
		"the next batch is let through": {func(r *v1beta1.BatchRelease, _ *appsv1.Deployment) {
			r.Spec.ReleasePlan.BatchPartition = ptr.To[int32](1)
		}, v1beta1.BatchStateUpgrading},
		"the batch is larger now": {func(r *v1beta1.BatchRelease, _ *appsv1.Deployment) {
			r.Spec.ReleasePlan.Batches[0].CanaryReplicas = intstr.FromInt32(7)
		}, v1beta1.BatchStateUpgrading},
	} {
		t.Run(name, func(t *testing.T) {
			p := v1beta1.ReleasePlan{
				Batches:        []v1beta1.ReleaseBatch{{CanaryReplicas: intstr.FromInt32(5)}, {CanaryReplicas: intstr.FromInt32(10)}},
				BatchPartition: ptr.To[int32](0), RollingStyle: v1beta1.RollingStylePartition,
			}
			r := &v1beta1.BatchRelease{
				ObjectMeta: metav1.ObjectMeta{Finalizers: []string{Finalizer}},
				Spec:       v1beta1.BatchReleaseSpec{WorkloadRef: v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, ReleasePlan: p},
			}
			r.Status.ObservedReleasePlanHash, r.Status.ObservedWorkloadReplicas = hashOf(p), 10
			r.Status.CanaryStatus.CurrentBatchState = v1beta1.BatchStateReady
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](10)}}
			d.Status.ObservedGeneration = 1
			tc.change(r, d)
			v := Classify(Snapshot{Release: r, Objects: steer.Objects{Workload: d}})
			if got := Status(v, plan.Plan{}, apply.Outcome{}).CanaryStatus.CurrentBatchState; got != tc.want {
				t.Errorf("the batch is %s, want %s", got, tc.want)
			}
		})
	}
}
