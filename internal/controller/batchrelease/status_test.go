package batchrelease

import (
	"strings"
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

// TestWhatBegins: only what a newer spec asks for, and nobody could take for ready, may be told later.
func TestWhatBegins(t *testing.T) {
	var ready v1beta1.BatchReleaseStatus
	ready.ObservedGeneration, ready.Phase, ready.UpdateRevision = 1, v1beta1.BatchReleasePhaseProgressing, "a"
	ready.CanaryStatus.CurrentBatchState = v1beta1.BatchStateReady
	upgrades := func(s *v1beta1.BatchReleaseStatus) { s.CanaryStatus.CurrentBatchState = v1beta1.BatchStateUpgrading }
	for name, tc := range map[string]struct {
		stored, next func(*v1beta1.BatchReleaseStatus)
		want         bool
	}{
		"the next batch": {nil, func(s *v1beta1.BatchReleaseStatus) { s.ObservedGeneration = 2; upgrades(s) }, true},
		"the end": {nil, func(s *v1beta1.BatchReleaseStatus) {
			s.ObservedGeneration, s.Phase = 2, v1beta1.BatchReleasePhaseFinalizing
		}, true},
		"a batch that is ready at once":  {nil, func(s *v1beta1.BatchReleaseStatus) { s.ObservedGeneration = 2 }, false},
		"one that is not ready any more": {nil, upgrades, false},
		"the end is reached": {nil, func(s *v1beta1.BatchReleaseStatus) {
			s.ObservedGeneration, s.Phase = 2, v1beta1.BatchReleasePhaseCompleted
		}, false},
		"one after one that was not ready":   {upgrades, func(s *v1beta1.BatchReleaseStatus) { s.ObservedGeneration = 2; upgrades(s) }, false},
		"the first, whose revision is noted": {func(s *v1beta1.BatchReleaseStatus) { s.UpdateRevision = "" }, func(s *v1beta1.BatchReleaseStatus) { s.ObservedGeneration = 2; upgrades(s) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			stored, next := ready.DeepCopy(), ready.DeepCopy()
			if tc.stored != nil {
				tc.stored(stored)
			}
			tc.next(next)
			if begins(stored, next) != tc.want {
				t.Errorf("%+v after %+v: %t", next, stored, !tc.want)
			}
		})
	}
}

// TestWhatCannotBeReleasedIsSaid in the status and by an event, whatever else the spec says, and the workload is left alone: trap T13.
func TestWhatCannotBeReleasedIsSaid(t *testing.T) {
	one, bad := []v1beta1.ReleaseBatch{{CanaryReplicas: intstr.FromInt32(1)}}, []v1beta1.ReleaseBatch{{CanaryReplicas: intstr.FromString("many")}}
	for name, tc := range map[string]struct {
		kind  string
		style v1beta1.RollingStyle
		of    []v1beta1.ReleaseBatch
		want  string
	}{
		"a kind that is no workload":           {"Job", v1beta1.RollingStylePartition, one, "a Job.apps can't be released in style Partition"},
		"a style that the kind has not":        {"StatefulSet", v1beta1.RollingStyleCanary, one, "a StatefulSet.apps can't be released in style Canary"},
		"no batches":                           {"Deployment", v1beta1.RollingStylePartition, nil, "releasePlan.batches are empty"},
		"a batch that is neither number nor %": {"Deployment", v1beta1.RollingStylePartition, bad, "releasePlan.batches[0]: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1beta1.BatchRelease{ObjectMeta: metav1.ObjectMeta{Name: "demo", Finalizers: []string{Finalizer}}}
			r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: tc.kind, Name: "web"}
			r.Spec.ReleasePlan = v1beta1.ReleasePlan{Batches: tc.of, BatchPartition: ptr.To[int32](0), RollingStyle: tc.style}
			r.Status.Message = "the message of before"
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](10)}}
			v := Classify(Snapshot{Release: r, Objects: steer.Objects{Workload: d}})
			p := Plan(v)
			if got := Status(v, p, apply.Outcome{}).Message; !strings.Contains(got, tc.want) {
				t.Errorf("the status says %q, want %q", got, tc.want)
			}
			if len(p.Stages) > 0 || len(p.Holds) != 1 || p.Holds[0].Event != eventUnsupported {
				t.Errorf("want one event and no write:\n%s", p)
			}
		})
	}
}
