package workloadspread

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

var now = time.Unix(1_800_000_000, 0)

// newSnapshot returns a CloneSet with subsets a, of two Pods at most, and b, which reschedules after 30 seconds, and Pods that were created in subsets
// a while ago.
func newSnapshot(pods ...*corev1.Pod) Snapshot {
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 3}}
	s.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
	s.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a", MaxReplicas: new(intstr.FromInt32(2))}, {Name: "b"}}
	s.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type: v1beta1.AdaptiveWorkloadSpread, Adaptive: &v1beta1.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: new(int32(30))},
	}
	return Snapshot{Spread: s, Owned: pods, Named: pods, Latest: v1beta1.VersionIgnored, Fill: spread.Fill{Limits: []int32{2, -1}, HasCosts: true}, Now: now}
}

// waiting returns a Pod of a subset that can't be scheduled.
func waiting(name, subset, cost string, age time.Duration) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)), ResourceVersion: "5",
		Annotations: map[string]string{keys.MatchedWorkloadSpread: spread.Matched{Name: "web", Subset: subset}.String(), corev1.PodDeletionCost: cost},
	}}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

// running returns a Pod of a subset that is ready.
func running(name, subset, cost string) *corev1.Pod {
	p := waiting(name, subset, cost, time.Hour)
	p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func (s Snapshot) closed(since time.Duration) Snapshot {
	s.Spread.Status.SubsetStatuses = []v1beta1.WorkloadSpreadSubsetStatus{{Name: "a", Conditions: []metav1.Condition{{
		Type: v1beta1.SubsetSchedulable, Status: metav1.ConditionFalse, Reason: reasonUnschedulable, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	}}}}
	return s
}

// TestPlanAdaptive goes through the life of a subset whose Pods can't be scheduled.
func TestPlanAdaptive(t *testing.T) {
	young, old, last := waiting("young", "a", "200", 20*time.Second), waiting("old", "a", "200", 31*time.Second), waiting("last", "b", "100", time.Hour)
	fixed := newSnapshot(old)
	fixed.Spread.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{}
	for name, tc := range map[string]struct {
		s       Snapshot
		deleted string
		recheck time.Duration
		event   string
		status  metav1.ConditionStatus
		since   time.Duration
	}{
		"one that waits has time":                 {s: newSnapshot(young), recheck: 10 * time.Second, status: metav1.ConditionTrue},
		"the subset is closed before":             {s: newSnapshot(old), status: metav1.ConditionFalse},
		"all managers must know it first":         {s: newSnapshot(old).closed(500 * time.Millisecond), recheck: 500 * time.Millisecond, status: metav1.ConditionFalse, since: 500 * time.Millisecond},
		"then the Pod goes":                       {s: newSnapshot(old).closed(2 * time.Second), deleted: "old", recheck: 298 * time.Second, status: metav1.ConditionFalse, since: 2 * time.Second},
		"the subset stays closed":                 {s: newSnapshot().closed(299 * time.Second), recheck: time.Second, status: metav1.ConditionFalse, since: 299 * time.Second},
		"and is opened":                           {s: newSnapshot().closed(300 * time.Second), event: "RecoverSchedulable", status: metav1.ConditionTrue},
		"unless a Pod can't be scheduled":         {s: newSnapshot(old).closed(300 * time.Second), deleted: "old", status: metav1.ConditionFalse},
		"the last subset has nowhere to send one": {s: newSnapshot(last), status: metav1.ConditionTrue},
		"without the strategy they wait":          {s: fixed},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(tc.s)
			deleted, event := "", ""
			for _, a := range p.Actions() {
				if a.Verb == plan.Delete {
					deleted += a.Object().GetName()
				}
			}
			for _, h := range p.Holds {
				event += h.Event
			}
			if deleted != tc.deleted || p.Recheck != tc.recheck || event != tc.event {
				t.Errorf("deleted %q, event %q, rechecked in %s, want %q, %q, %s:\n%s", deleted, event, p.Recheck, tc.deleted, tc.event, tc.recheck, p)
			}
			status := Status(tc.s, p, apply.Outcome{})
			conditions := status.SubsetStatuses[0].Conditions
			if tc.status == "" {
				if len(conditions) > 0 {
					t.Errorf("the conditions are %v", conditions)
				}
				return
			}
			if c := conditions[0]; c.Status != tc.status || tc.since > 0 && !c.LastTransitionTime.Time.Equal(now.Add(-tc.since)) ||
				tc.status == metav1.ConditionFalse && tc.since == 0 && !c.LastTransitionTime.Time.Equal(now) {
				t.Errorf("the condition is %+v", c)
			}
			if last := status.SubsetStatuses[1].Conditions[0]; last.Status != metav1.ConditionTrue {
				t.Errorf("the last subset is closed: %+v", last)
			}
			tc.s.Spread.Status = status
			if again := Status(tc.s, p, apply.Outcome{}); again.SubsetStatuses[0].Conditions[0] != status.SubsetStatuses[0].Conditions[0] {
				t.Error("the status changes by itself")
			}
		})
	}
}

// TestPlanMovesSurplus: one Pod above a limit goes at a time, if all Pods are there and ready and another subset has room.
func TestPlanMovesSurplus(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		moved  string
		looks  bool
	}{
		"one after the other":            {moved: "a3", looks: true},
		"they are to be kept":            {change: func(s *Snapshot) { s.Spread.Spec.SurplusPolicy = v1beta1.KeepSurplus }},
		"nothing is said":                {change: func(s *Snapshot) { s.Spread.Spec.SurplusPolicy = "" }},
		"no other subset has room":       {change: func(s *Snapshot) { s.Limits[1] = 1 }, looks: true},
		"one Pod is not ready":           {change: func(s *Snapshot) { s.Owned[4].Status.Conditions = nil }, looks: true},
		"one Pod is on its way out":      {change: func(s *Snapshot) { s.Owned[4].DeletionTimestamp = &metav1.Time{} }, looks: true},
		"one Pod is over":                {change: func(s *Snapshot) { s.Owned[4].Status.Phase, s.Total = corev1.PodFailed, 4 }, moved: "a3", looks: true},
		"one Pod is missing":             {change: func(s *Snapshot) { s.Total = 6 }, looks: true},
		"the limit is as high as it has": {change: func(s *Snapshot) { s.Limits[0] = 4 }},
		"a workload that heeds no costs": {change: func(s *Snapshot) {
			s.HasCosts = false
		}},
		"the Pods of a subset that's gone": {change: func(s *Snapshot) { s.Spread.Spec.Subsets[0].Name = "c" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(running("a0", "a", "200"), running("a1", "a", "200"), running("a2", "a", "-100"), running("a3", "a", "-100"), running("b", "b", "100"))
			s.Owned[3].CreationTimestamp = metav1.NewTime(now)
			s.Spread.Spec.SurplusPolicy, s.Total = v1beta1.MoveSurplus, 5
			if tc.change != nil {
				tc.change(&s)
			}
			p := Plan(s)
			var moved []string
			for _, a := range p.Actions() {
				if a.Verb == plan.Delete {
					moved = append(moved, a.Object().GetName())
				}
			}
			if got := strings.Join(moved, ","); got != tc.moved || (p.Recheck == moveInterval) != tc.looks {
				t.Errorf("moved are %q, want %q; it is looked again after %s:\n%s", got, tc.moved, p.Recheck, p)
			}
		})
	}
}

// TestPlanReturnsPods: Pods come back to an earlier subset one by one, once it takes Pods again and has room.
func TestPlanReturnsPods(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*Snapshot)
		returned string
	}{
		"the last one goes first":        {returned: "b2"},
		"nobody has asked for it":        {change: func(s *Snapshot) { s.Spread.Spec.ScheduleStrategy.Adaptive.ReturnPods = false }},
		"the subset is closed":           {change: func(s *Snapshot) { *s = s.closed(time.Minute) }},
		"the subset is full":             {change: func(s *Snapshot) { s.Limits[0] = 1 }},
		"a Pod is missing":               {change: func(s *Snapshot) { s.Total = 5 }},
		"a Pod is not ready":             {change: func(s *Snapshot) { s.Owned[1].Status.Conditions = nil }},
		"a workload that heeds no costs": {change: func(s *Snapshot) { s.HasCosts = false }},
		"room is given to another one": {change: func(s *Snapshot) {
			s.Spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.WorkloadSpreadSubsetStatus{
				v1beta1.VersionIgnored: {{Name: "a", CreatingPods: map[string]metav1.Time{"x": metav1.NewTime(now)}}},
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(running("a0", "a", "200"), running("b1", "b", "100"), running("b2", "b", "100"))
			s.Owned[2].CreationTimestamp = metav1.NewTime(now)
			s.Total, s.Spread.Spec.ScheduleStrategy.Adaptive.ReturnPods = 3, true
			if tc.change != nil {
				tc.change(&s)
			}
			returned := ""
			for _, a := range Plan(s).Actions() {
				if a.Verb == plan.Delete {
					returned += a.Object().GetName()
				}
			}
			if returned != tc.returned {
				t.Errorf("returned are %q, want %q:\n%s", returned, tc.returned, Plan(s))
			}
		})
	}
}

// TestPlanTellsOfWhatDidNotCome: room of a Pod that nobody has seen comes back, with an event.
func TestPlanTellsOfWhatDidNotCome(t *testing.T) {
	s := newSnapshot()
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	s.Spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.WorkloadSpreadSubsetStatus{"v1": {{
		Name: "a", CreatingPods: map[string]metav1.Time{"lost": at(30 * time.Second), "was": at(30 * time.Second), "new": at(20 * time.Second)},
	}}}
	s.Gone = map[string]bool{"was": true}
	p := Plan(s)
	if len(p.Holds) != 1 || p.Holds[0].Event != "CreatePodFailed" || !strings.HasSuffix(p.Holds[0].Why, ": lost") || p.Recheck != 10*time.Second {
		t.Errorf("the plan is:\n%s", p)
	}
	if a := Status(s, p, apply.Outcome{}).SubsetStatuses[0]; len(a.CreatingPods) != 1 || a.MissingReplicas != 1 {
		t.Errorf("the status is %+v", a)
	}
}

// TestPlanWritesOnlyWhatChanged: Pods that are as they should be cost nothing, one that runs unclaimed one write.
func TestPlanWritesOnlyWhatChanged(t *testing.T) {
	right, wrong, unclaimed := waiting("right", "a", "200", 0), waiting("wrong", "b", "200", 0), waiting("unclaimed", "b", "", 0)
	for _, p := range []*corev1.Pod{right, wrong, unclaimed} {
		p.Spec.NodeName = "n"
	}
	unclaimed.Annotations = nil
	s := newSnapshot(right, wrong, unclaimed)
	s.Named = []*corev1.Pod{right, wrong}
	s.Nodes = map[string]*corev1.Node{"n": {}}
	got := map[string]string{}
	for _, a := range Plan(s).Actions() {
		m, _ := spread.MatchedOf(a.After.(*corev1.Pod))
		got[a.Object().GetName()] += m.Subset + a.Object().GetAnnotations()[corev1.PodDeletionCost]
	}
	if len(got) != 2 || got["wrong"] != "b100" || got["unclaimed"] != "a200" {
		t.Errorf("written are %v, want wrong in b with 100 and unclaimed in a with 200, once each", got)
	}
	s.Nodes["n"] = nil
	if p := Plan(s); len(p.Actions()) != 2 { // it is in no subset, which has a cost as well
		t.Errorf("a Pod on a node that is gone joins a subset:\n%s", p)
	}
}
