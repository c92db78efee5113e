package recreate

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func podThatHas(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: corev1.PodStatus{Phase: phase}}
}

// TestAGraceIsWithinBounds reads periods that a stored request of an older schema may have, or that overflow a duration.
func TestAGraceIsWithinBounds(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{
		-1: 0, 0: 0, 7: 7 * time.Second, math.MaxInt32: math.MaxInt32 * time.Second, 1 << 40: math.MaxInt32 * time.Second,
		math.MaxInt64: math.MaxInt32 * time.Second, math.MinInt64: 0,
	} {
		r := &v1beta1.ContainerRecreateRequest{}
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: &seconds}
		BeginGrace(&r.Status, noon())
		if got, begun := GraceLeft(r, noon()); got != want+roundingSlack || !begun {
			t.Errorf("of %d seconds %s are left, want %s", seconds, got, want+roundingSlack)
		}
	}
}

func TestOverdue(t *testing.T) {
	deadline := func(seconds int64) *int64 { return &seconds }
	here := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: &metav1.Time{Time: noon()}}}
	cases := map[string]struct {
		pod      *corev1.Pod
		phase    v1beta1.ContainerRecreateRequestPhase
		deadline *int64
		age      time.Duration
		want     string
		wait     time.Duration
	}{
		"seen by its daemon":       {here, recreating, nil, time.Hour, "", 0},
		"waiting has no limit":     {here, pending, nil, time.Hour, "", 0},
		"not seen yet":             {here, "", nil, 20 * time.Second, "", 40 * time.Second},
		"not seen for a minute":    {here, "", nil, time.Minute, "daemon has not responded for a long time", 0},
		"within its deadline":      {here, recreating, deadline(10), 4 * time.Second, "", 6 * time.Second},
		"the deadline comes first": {here, "", deadline(10), 4 * time.Second, "", 6 * time.Second},
		"the silence comes first":  {here, "", deadline(100), 20 * time.Second, "", 40 * time.Second},
		"over its deadline": {
			here, recreating, deadline(10), 10 * time.Second, "recreating has exceeded the activeDeadlineSeconds", 0,
		},
		"a deadline that never comes": {
			here, recreating, deadline(math.MaxInt64), time.Second, "", math.MaxInt32*time.Second - time.Second,
		},
		"the Pod was evicted":                             {podThatHas(corev1.PodFailed), recreating, nil, time.Minute, "pod has ended: its containers are not started again", 0},
		"the Pod has done its work":                       {podThatHas(corev1.PodSucceeded), "", nil, time.Minute, "pod has ended: its containers are not started again", 0},
		"the daemon may still tell why the Pod has ended": {podThatHas(corev1.PodFailed), recreating, nil, 20 * time.Second, "", 40 * time.Second},
		"the Pod is gone":                                 {nil, recreating, nil, time.Second, "pod has gone", 0},
		"the Pod is being deleted":                        {leaving, recreating, nil, time.Second, "pod has gone", 0},
		"another Pod has the Pod's name": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "v"}}, recreating, nil, time.Second, "pod has gone", 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
				CreationTimestamp: metav1.NewTime(noon().Add(-tc.age)), Labels: map[string]string{keys.RecreatePodUID: "u"},
			}}
			r.Spec.ActiveDeadlineSeconds, r.Status.Phase = tc.deadline, tc.phase
			if message, wait := Overdue(r, tc.pod, noon()); message != tc.want || wait != tc.wait {
				t.Errorf("Overdue() = %q, %s, want %q, %s", message, wait, tc.want, tc.wait)
			}
		})
	}
}

func TestEnding(t *testing.T) {
	states := func(a, b v1beta1.ContainerRecreateRequestPhase) []State {
		return []State{{Name: "a", Phase: a}, {Name: "b", Phase: b}}
	}
	condition := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{
			{Type: "Succeeded", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon())},
		}
	}
	at := metav1.NewTime(noon())
	cases := map[string]struct {
		states  []State
		message string
		want    v1beta1.ContainerRecreateRequestStatus
	}{
		"all recreated": {states(succeeded, succeeded), "", v1beta1.ContainerRecreateRequestStatus{
			ContainerRecreateStates: states(succeeded, succeeded), Conditions: condition(
				"True", "ContainersRecreated", "every container was recreated",
			),
		}},
		"one failed, the other was left alone": {states(failure, pending), "", v1beta1.ContainerRecreateRequestStatus{
			ContainerRecreateStates: states(failure, pending), Conditions: condition(
				"False", "ContainerFailed", "container a was not recreated",
			),
		}},
		"the Pod is gone": {states(succeeded, recreating), "pod has gone", v1beta1.ContainerRecreateRequestStatus{
			ContainerRecreateStates: states(succeeded, recreating),
			Message:                 "pod has gone", Conditions: condition("False", "PodGone", "pod has gone"),
		}},
		"the deadline has passed": {states(recreating, pending), deadlineExceeded, v1beta1.ContainerRecreateRequestStatus{
			ContainerRecreateStates: states(recreating, pending),
			Message:                 deadlineExceeded, Conditions: condition("False", "DeadlineExceeded", deadlineExceeded),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := v1beta1.ContainerRecreateRequestStatus{ContainerRecreateStates: tc.states}
			Complete(&got, tc.message, noon())
			tc.want.Phase, tc.want.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &at
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGraceBeginsOnce(t *testing.T) {
	period := int64(5)
	r := asked(strategyOf{UnreadyGracePeriodSeconds: &period}, nil, "a")
	if NeedsGrace(r) {
		t.Error("the grace begins before the daemon has seen the request")
	}
	r.Status.Phase = recreating
	if !NeedsGrace(r) {
		t.Error("the grace does not begin")
	}
	if left, begun := GraceLeft(r, noon()); begun {
		t.Errorf("the grace ends in %s, before it has begun", left)
	}
	for second := range 3 {
		BeginGrace(&r.Status, noon().Add(time.Duration(second)*time.Second))
	}
	if left, begun := GraceLeft(r, noon().Add(2*time.Second)); !begun || left != 3100*time.Millisecond {
		t.Errorf("GraceLeft() = %s, %v, want 3.1s, true", left, begun)
	}
	if left, begun := GraceLeft(asked(strategyOf{}, nil, "a"), noon()); !begun || left != 0 {
		t.Errorf("without a grace: %s, %v", left, begun)
	}
}

func TestPick(t *testing.T) {
	at := func(name string, phase v1beta1.ContainerRecreateRequestPhase, second int) *v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon().Add(time.Duration(second) * time.Second))},
		}
		r.Status.Phase = phase
		return r
	}
	leaving := at("leaving", recreating, 0)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	cases := map[string]struct {
		requests []*v1beta1.ContainerRecreateRequest
		want     []string
	}{
		"none":          {nil, nil},
		"the older one": {[]*v1beta1.ContainerRecreateRequest{at("b", "", 1), at("a", "", 0)}, []string{"a", "b"}},
		"the one under way": {
			[]*v1beta1.ContainerRecreateRequest{at("a", "", 0), at("b", recreating, 1)}, []string{"b", "a"},
		},
		"the one that waits already": {
			[]*v1beta1.ContainerRecreateRequest{at("a", "", 0), at("b", pending, 1)}, []string{"b", "a"},
		},
		"not one that has ended or is going": {
			[]*v1beta1.ContainerRecreateRequest{leaving, at("a", v1beta1.ContainerRecreateRequestCompleted, 0), at("b", "", 1)},
			[]string{"b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			acting, waiting := Pick(tc.requests)
			if acting != nil {
				got = append(got, acting.Name)
			}
			for _, r := range waiting {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotTellsOfNewContainersOnly(t *testing.T) {
	status := func(name, id string, restarts int32, started time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, ContainerID: "c://" + id, RestartCount: restarts, Ready: true, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon().Add(started))},
		}}
	}
	r := asked(strategyOf{}, nil, "a", "b", "c")
	p := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		status("a", "a1", 1, -time.Hour), // a node whose clock is an hour behind
		status("b", "b0", 0, -time.Hour),
	}}}
	want := []ContainerStatus{{Name: "a", Ready: true, RestartCount: 1, ContainerID: "c://a1"}}
	if diff := cmp.Diff(want, Snapshot(r, p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Status.ContainerStatusSnapshot = want
	if diff := cmp.Diff(want, Snapshot(r, &corev1.Pod{})); diff != "" {
		t.Errorf("between two lives (-want +got):\n%s", diff)
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status("b", "b1", 1, 0)}
	want = append(want, ContainerStatus{Name: "b", Ready: true, RestartCount: 1, ContainerID: "c://b1"})
	if diff := cmp.Diff(want, Snapshot(r, p)); diff != "" {
		t.Errorf("one is between two lives and another has restarted (-want +got):\n%s", diff)
	}
}
