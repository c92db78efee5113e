package podunavailablebudget

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func availablePod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: ago(time.Hour)}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return p
}

// seen is a budget of 4 Pods, of which one may be unavailable, and its Pods.
func seen(change func(*Snapshot)) Snapshot {
	one := intstr.FromInt32(1)
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "guard", Generation: 3}}
	b.Spec.MaxUnavailable = &one
	s := Snapshot{Budget: b, Total: 4, Now: noon}
	for i := range 4 {
		s.Pods = append(s.Pods, availablePod(fmt.Sprintf("p%d", i)))
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		change  func(*Snapshot)
		writes  []string
		holds   []string // reasons, of which object, and why
		recheck time.Duration
	}{
		"all is as it should be": {},
		"Pods that are linked to it, and away from it": {
			change: func(s *Snapshot) {
				s.Links = []Link{{Pod: s.Pods[0], To: "guard"}, {Pod: s.Pods[1]}}
			},
			writes: []string{"link p0 to guard", "unlink p1"},
		},
		"no Pods": {change: func(s *Snapshot) { s.Pods = nil }, holds: []string{"NoPods of : No matching pods found"}},
		"a permission": {
			change:  func(s *Snapshot) { s.Budget.Status.DisruptedPods = map[string]metav1.Time{"p1": ago(5 * time.Second)} },
			recheck: 15 * time.Second,
		},
		"a permission that nobody used": {
			change: func(s *Snapshot) { s.Budget.Status.DisruptedPods = map[string]metav1.Time{"p1": ago(21 * time.Second)} },
			holds:  []string{"NotDeleted of p1: its deletion was permitted by PodUnavailableBudget guard 20s ago and has not begun: it counts as available again"},
		},
		"a scale": {change: func(s *Snapshot) { s.Polled = true }, recheck: 30 * time.Second},
		"a scale that can't be read": {
			change: func(s *Snapshot) {
				s.Problem, s.Pods = errors.New("reading the scale: it is dark"), nil
				s.Budget.Status.DisruptedPods = map[string]metav1.Time{"p1": ago(21 * time.Second)}
			},
			holds: []string{"CalculateExpectedPodCountFailed of : reading the scale: it is dark"}, recheck: 5 * time.Second,
		},
		"a number that can't be read": {
			change:  func(s *Snapshot) { *s.Budget.Spec.MaxUnavailable = intstr.FromString("some") },
			holds:   []string{`CalculateExpectedPodCountFailed of : spec.maxUnavailable: "some" is neither a number nor a percentage such as "20%"`},
			recheck: 5 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := seen(tc.change)
			before := s.Budget.DeepCopy()
			p := Plan(s)
			var writes, holds []string
			for _, a := range p.Actions() {
				writes = append(writes, a.What)
			}
			for _, h := range p.Holds {
				holds = append(holds, h.Event+" of "+h.On.Name+": "+h.Why)
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.holds, holds); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
			if p.Recheck != tc.recheck {
				t.Errorf("looks again after %s, want %s", p.Recheck, tc.recheck)
			}
			if diff := cmp.Diff(before, s.Budget); diff != "" {
				t.Errorf("the budget was changed:\n%s", diff)
			}
		})
	}
}

func TestLinksTouchNothingElse(t *testing.T) {
	s := seen(func(s *Snapshot) {
		s.Pods[0].Annotations = map[string]string{"note": "kept", keys.RelatedBudgetOld: "gone"}
		s.Links = []Link{{Pod: s.Pods[0], To: "guard"}}
	})
	a := Plan(s).Actions()[0]
	want := s.Pods[0].DeepCopy()
	want.Annotations = map[string]string{"note": "kept", keys.RelatedBudget: "guard", keys.RelatedBudgetOld: "guard"}
	if diff := cmp.Diff(want, a.After); diff != "" || !a.AnyVersion {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	condition := func(kind, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: ago(0)}}
	}
	cases := map[string]struct {
		change func(*Snapshot)
		want   v1beta1.PodUnavailableBudgetStatus
	}{
		"all is as it should be": {
			want: v1beta1.PodUnavailableBudgetStatus{ObservedGeneration: 3, UnavailableAllowed: 1, CurrentAvailable: 4, DesiredAvailable: 3, TotalReplicas: 4},
		},
		"a permission is open": {
			change: func(s *Snapshot) { s.Budget.Status.DisruptedPods = map[string]metav1.Time{"p1": ago(time.Second)} },
			want: v1beta1.PodUnavailableBudgetStatus{
				ObservedGeneration: 3, CurrentAvailable: 3, DesiredAvailable: 3, TotalReplicas: 4, DisruptedPods: map[string]metav1.Time{"p1": ago(time.Second)},
			},
		},
		"more Pods than there should be": {
			change: func(s *Snapshot) { s.Total = 2 },
			want: v1beta1.PodUnavailableBudgetStatus{
				ObservedGeneration: 3, UnavailableAllowed: 3, CurrentAvailable: 4, DesiredAvailable: 1, TotalReplicas: 2,
				Conditions: condition("SurplusPods", "MorePodsThanReplicas", "there are 4 Pods where there should be 2"),
			},
		},
		"a workload that does not say": {
			change: func(s *Snapshot) { s.Silent = []string{"Job a", "Job b"} },
			want: v1beta1.PodUnavailableBudgetStatus{
				ObservedGeneration: 3, UnavailableAllowed: 1, CurrentAvailable: 4, DesiredAvailable: 3, TotalReplicas: 4,
				Conditions: condition("TotalReplicasUnknown", "NoReplicas", "these do not say how many Pods they should have, so those that are there are counted: Job a, Job b"),
			},
		},
		"what was told is over": {
			change: func(s *Snapshot) { s.Budget.Status.Conditions = condition("SurplusPods", "", "") },
			want:   v1beta1.PodUnavailableBudgetStatus{ObservedGeneration: 3, UnavailableAllowed: 1, CurrentAvailable: 4, DesiredAvailable: 3, TotalReplicas: 4},
		},
		"nothing can be known": {
			change: func(s *Snapshot) {
				s.Problem, s.Pods = errors.New("dark"), nil
				s.Budget.Status = v1beta1.PodUnavailableBudgetStatus{
					ObservedGeneration: 2, UnavailableAllowed: 2, CurrentAvailable: 4, DesiredAvailable: 2, TotalReplicas: 4, UnavailablePods: map[string]metav1.Time{"p1": ago(time.Hour)},
				}
			},
			want: v1beta1.PodUnavailableBudgetStatus{
				ObservedGeneration: 2, CurrentAvailable: 4, DesiredAvailable: 2, TotalReplicas: 4, UnavailablePods: map[string]metav1.Time{"p1": ago(time.Hour)},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Status(seen(tc.change), plan.Plan{}, apply.Outcome{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
