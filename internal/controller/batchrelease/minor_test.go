package batchrelease

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestIsMinor: what a Rollout waits for is stored at once, and that a batch begins is told by the generation.
func TestIsMinor(t *testing.T) {
	ready := func(change func(*v1beta1.BatchReleaseStatus)) *v1beta1.BatchReleaseStatus {
		s := &v1beta1.BatchReleaseStatus{}
		s.Phase, s.ObservedGeneration, s.UpdateRevision = v1beta1.BatchReleasePhaseProgressing, 3, "v2"
		s.CanaryStatus.CurrentBatchState, s.CanaryStatus.BatchReadyTime = v1beta1.BatchStateReady, ptr.To(metav1.Unix(1e9, 0))
		change(s)
		return s
	}
	state := func(state v1beta1.BatchState) func(*v1beta1.BatchReleaseStatus) {
		return func(s *v1beta1.BatchReleaseStatus) {
			s.CanaryStatus.CurrentBatchState, s.CanaryStatus.BatchReadyTime = state, nil
		}
	}
	next := func(state v1beta1.BatchState) func(*v1beta1.BatchReleaseStatus) {
		return func(s *v1beta1.BatchReleaseStatus) {
			s.ObservedGeneration, s.CanaryStatus.CurrentBatch, s.CanaryStatus.CurrentBatchState = 4, 1, state
			s.CanaryStatus.BatchReadyTime = nil
		}
	}
	same := func(*v1beta1.BatchReleaseStatus) {}
	cases := map[string]struct {
		stored, next *v1beta1.BatchReleaseStatus
		want         bool
	}{
		"counts":                       {ready(same), ready(func(s *v1beta1.BatchReleaseStatus) { s.CanaryStatus.UpdatedReplicas = 5 }), true},
		"the next batch begins":        {ready(same), ready(next(v1beta1.BatchStateUpgrading)), true},
		"the next batch is ready":      {ready(same), ready(next(v1beta1.BatchStateReady)), false},
		"a batch is not ready anymore": {ready(same), ready(state(v1beta1.BatchStateVerifying)), false},
		"a batch becomes ready":        {ready(state(v1beta1.BatchStateVerifying)), ready(same), false},
		"a rollback is counted": {ready(same), ready(func(s *v1beta1.BatchReleaseStatus) {
			next(v1beta1.BatchStateUpgrading)(s)
			s.CanaryStatus.NoNeedUpdateReplicas = ptr.To[int32](3)
		}), false},
		"it ends": {ready(same), ready(func(s *v1beta1.BatchReleaseStatus) {
			s.ObservedGeneration, s.Phase = 4, v1beta1.BatchReleasePhaseFinalizing
		}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isMinor(tc.stored, tc.next); got != tc.want {
				t.Errorf("minor: %v, want %v", got, tc.want)
			}
		})
	}
}
