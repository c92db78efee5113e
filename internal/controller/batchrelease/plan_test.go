package batchrelease

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// TestAFrozenWorkloadIsStillFoundByWhoEndsTheRelease: a BatchRelease that goes takes its claim off the workload, but not where nothing else
// says that the workload is frozen by a release.
func TestAFrozenWorkloadIsStillFoundByWhoEndsTheRelease(t *testing.T) {
	rollout := []metav1.OwnerReference{{Kind: "Rollout", Name: "demo", Controller: ptr.To(true)}}
	for name, tc := range map[string]struct {
		change  func(*v1beta1.BatchRelease, *appsv1.Deployment)
		claimed bool
		frozen  bool
	}{
		"the mark tells": {func(_ *v1beta1.BatchRelease, d *appsv1.Deployment) {
			d.Annotations[keys.InProgressing] = `{"rolloutName":"demo"}`
		}, false, true},
		"somebody has removed the mark": {func(*v1beta1.BatchRelease, *appsv1.Deployment) {}, true, true},
		"it lets the workload go": {func(r *v1beta1.BatchRelease, _ *appsv1.Deployment) {
			r.Spec.ReleasePlan.BatchPartition = nil
		}, false, false},
		"no Rollout has made it": {func(r *v1beta1.BatchRelease, _ *appsv1.Deployment) { r.OwnerReferences = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{keys.AdvancedDeployment: "true"}}}
			d.Spec.Replicas, d.Spec.Paused = ptr.To[int32](10), true
			d.Annotations = map[string]string{keys.DeploymentStrategy: `{"partition":"20%"}`}
			r := &v1beta1.BatchRelease{ObjectMeta: metav1.ObjectMeta{
				Name: "demo", UID: "one", Finalizers: []string{Finalizer}, OwnerReferences: rollout,
				DeletionTimestamp: ptr.To(metav1.NewTime(time.Unix(0, 0))),
			}}
			r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
			r.Spec.ReleasePlan = v1beta1.ReleasePlan{BatchPartition: ptr.To[int32](0), RollingStyle: v1beta1.RollingStylePartition}
			d = steer.Claim(d, referenceTo(r)).(*appsv1.Deployment)
			tc.change(r, d)
			v := Classify(Snapshot{Release: r, Objects: steer.Objects{Workload: d}})
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, keys.ResumedRevision, v.facts.Update) // the Rollout tells it of the present template
			p := Plan(Classify(v.Snapshot))
			for _, stage := range p.Stages {
				for _, chain := range stage {
					if after, is := chain[0].After.(*appsv1.Deployment); is {
						d = after
					}
				}
			}
			kind, _ := steer.Of(releases.GroupKind(r.Spec.WorkloadRef), v1beta1.RollingStylePartition)
			_, claimed := steer.ClaimOf(d)
			if frozen := kind.See(steer.Objects{Workload: d}).Frozen; claimed != tc.claimed || frozen != tc.frozen {
				t.Errorf("claimed %t, seen as frozen %t, want %t and %t:\n%s", claimed, frozen, tc.claimed, tc.frozen, p)
			}
		})
	}
}
