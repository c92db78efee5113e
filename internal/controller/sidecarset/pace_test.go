package sidecarset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

func TestPassesThatOnlyCountAreASecondApart(t *testing.T) {
	const pods = 100
	none := func(int) bool { return false }
	all := func(int) bool { return true }
	cases := map[string]struct {
		isUpdated func(int) bool
		change    func(*testing.T, *Snapshot)
		want      time.Duration
	}{
		"all Pods are up to date": {isUpdated: all, want: time.Second},
		"Pods are to be updated":  {isUpdated: none, want: loop.IntervalOf(pods)},
		"the update is paused": {
			isUpdated: none, change: func(_ *testing.T, s *Snapshot) { s.Set.Spec.UpdateStrategy.Paused = true }, want: time.Second,
		},
		"existing Pods are never updated": {
			isUpdated: none,
			change: func(_ *testing.T, s *Snapshot) {
				s.Set.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
			},
			want: time.Second,
		},
		"a new Pod is not ready": {
			isUpdated: all,
			change: func(_ *testing.T, s *Snapshot) {
				s.Pods[3].Status.ContainerStatuses, s.Pods[3].Status.Conditions = nil, nil
			},
			want: time.Second,
		},
		"an update in a Pod is not over": {
			isUpdated: func(pod int) bool { return pod != 3 },
			change: func(t *testing.T, s *Snapshot) {
				target, err := sidecar.NewTarget(s.Set, "log-2")
				if err != nil {
					t.Fatal(err)
				}
				target.Upgrade(s.Pods[3], s.Now)
			},
			want: loop.IntervalOf(pods),
		},
		"the revision is not stored": {
			isUpdated: all, change: func(_ *testing.T, s *Snapshot) { s.Revisions = nil }, want: loop.IntervalOf(pods),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(t, pods, tc.isUpdated)
			revision, err := sidecar.NewRevision(s.Set, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			revision.Revision = 1
			s.Revisions = []*appsv1.ControllerRevision{revision}
			if tc.change != nil {
				tc.change(t, &s)
			}
			v := Classify(s)
			if v.problem != nil {
				t.Fatal(v.problem)
			}
			if got := minInterval(v); got != tc.want {
				t.Errorf("the next pass begins %s after this one, want %s", got, tc.want)
			}
		})
	}
}

func TestAStatusIsFinalWhenAllIsDoneThatIsToBeDone(t *testing.T) {
	cases := map[string]struct {
		reason   string
		observed int64
		want     bool
	}{
		"all Pods are updated":               {reason: v1beta1.SidecarSetUpdated, observed: 2, want: true},
		"all that the partition lets be are": {reason: v1beta1.SidecarSetPartitionReached, observed: 2, want: true},
		"the rest has to be created anew":    {reason: v1beta1.SidecarSetImmutableFieldChanged, observed: 2, want: true},
		"it was true of an older spec":       {reason: v1beta1.SidecarSetUpdated, observed: 1},
		"Pods are being updated":             {reason: v1beta1.SidecarSetUpdating, observed: 2},
		"the update is paused":               {reason: v1beta1.SidecarSetPaused, observed: 2},
		"nothing has been judged":            {observed: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			set.Status.ObservedGeneration = tc.observed
			if tc.reason != "" {
				set.Status.Conditions = []metav1.Condition{{Type: v1beta1.SidecarSetConditionProgressing, Reason: tc.reason}}
			}
			if got := isOver(set); got != tc.want {
				t.Errorf("final: %t, want %t", got, tc.want)
			}
		})
	}
}
