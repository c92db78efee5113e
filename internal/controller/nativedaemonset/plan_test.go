package nativedaemonset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// frozen is a DaemonSet of 4 nodes in a release to revision b, of which one Pod stays old, and its Pods.
func frozen(t *testing.T) Snapshot {
	t.Helper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 3, UID: "u", Annotations: map[string]string{
		keys.InProgressing: `{"rolloutName":"demo"}`, keys.DaemonSetOriginalStrategy: "RollingUpdate",
		keys.DaemonSetControl: `{"partition":"1","batch-revision":"b"}`,
	}}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:v2"}}
	set.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type: appsv1.OnDeleteDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromInt32(2))},
	}
	set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled = 3, 4
	data, err := revision.Data(&set.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	s := Snapshot{DaemonSet: set, Now: now, Revisions: []*appsv1.ControllerRevision{{
		ObjectMeta: metav1.ObjectMeta{Name: "web-b", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "b"}},
		Data:       runtime.RawExtension{Raw: data}, Revision: 2,
	}}}
	for i, hash := range []string{"a", "a", "a", "b"} {
		s.Pods = append(s.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Second)),
			}}},
		})
	}
	return s
}

func TestPlan(t *testing.T) {
	control := func(text string) func(*Snapshot) {
		return func(s *Snapshot) { s.DaemonSet.Annotations[keys.DaemonSetControl] = text }
	}
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		// gone are the Pods that are deleted, held is part of what has to wait, problem of what can't be read.
		gone, held, problem string
	}{
		"all but one are updated, within the budget": {change: func(*Snapshot) {}, gone: "web-0 web-1"},
		"one Pod at a time by default": {change: func(s *Snapshot) { s.DaemonSet.Spec.UpdateStrategy.RollingUpdate = nil },
			gone: "web-0", held: "1 more Pods are to be updated"},
		"a Pod that is not ready for long enough is waited for": {change: func(s *Snapshot) {
			s.DaemonSet.Spec.MinReadySeconds = 60
			for _, p := range s.Pods[:3] {
				p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
			}
		}, gone: "web-0", held: "1 more Pods are to be updated"},
		"the release is paused":                {change: control(`{"partition":"1","batch-revision":"b","paused":true}`), held: "paused"},
		"the annotation is of another":         {change: control(`{"partition":"1","batch-revision":"a"}`), held: "the template has changed"},
		"its revision is not stored":           {change: func(s *Snapshot) { s.Revisions = nil }, held: "not of its present spec"},
		"its status is late":                   {change: func(s *Snapshot) { s.DaemonSet.Generation++ }, held: "not of its present spec"},
		"it has changed since":                 {change: func(s *Snapshot) { s.Outdated = true }, held: "has changed since"},
		"the annotation can't be read":         {change: control(`{"partition":"some"}`), problem: `partition "some" is not a number of Pods`},
		"a user's OnDelete is nothing of ours": {change: func(s *Snapshot) { delete(s.DaemonSet.Annotations, keys.InProgressing) }},
		"it is being deleted":                  {change: func(s *Snapshot) { s.DaemonSet.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := frozen(t)
			tc.change(&s)
			p := Plan(Classify(s))
			var gone []string
			for _, a := range p.Actions() {
				if a.Verb != plan.Delete || a.Event != eventDeleted {
					t.Errorf("writes %+v", a)
				}
				gone = append(gone, a.Object().GetName())
			}
			if got := strings.Join(gone, " "); got != tc.gone {
				t.Errorf("deletes %q, want %q", got, tc.gone)
			}
			if text := fmt.Sprint(p.Holds); (tc.held == "") != (len(p.Holds) == 0) || !strings.Contains(text, tc.held) {
				t.Errorf("holds %s, want %q", text, tc.held)
			}
			if text := fmt.Sprint(p.Problem); (tc.problem == "") != (p.Problem == nil) || !strings.Contains(text, tc.problem) {
				t.Errorf("problem %s, want %q", text, tc.problem)
			}
		})
	}
}

// TestADaemonSetOfARolloutThatIsGone gets its own strategy back, in one write together with all marks.
func TestADaemonSetOfARolloutThatIsGone(t *testing.T) {
	s := frozen(t)
	s.Orphaned = true
	actions := Plan(Classify(s)).Actions()
	if len(actions) != 1 || actions[0].Event != eventOrphaned {
		t.Fatalf("writes %+v", actions)
	}
	after := actions[0].After.(*appsv1.DaemonSet)
	if after.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || len(after.Annotations) > 0 {
		t.Errorf("left with %+v and %v", after.Spec.UpdateStrategy, after.Annotations)
	}
}

// TestALookWhenAPodHasBeenReadyForLongEnough: no event tells of it.
func TestALookWhenAPodHasBeenReadyForLongEnough(t *testing.T) {
	s := frozen(t)
	s.DaemonSet.Spec.MinReadySeconds = 60
	if got := Plan(Classify(s)).Recheck; got != 55*time.Second {
		t.Errorf("it looks again in %s, want 55s", got)
	}
}
