package pod_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func TestIsActive(t *testing.T) {
	cases := map[string]struct {
		pod              *build.PodBuilder
		active, finished bool
	}{
		"pending":                    {build.Pod("p"), true, false},
		"running":                    {build.Pod("p").NotReady(), true, false},
		"unknown":                    {build.Pod("p").Phase(corev1.PodUnknown), true, false},
		"ended well":                 {build.Pod("p").Phase(corev1.PodSucceeded), false, true},
		"ended badly":                {build.Pod("p").Phase(corev1.PodFailed), false, true},
		"being deleted":              {build.Pod("p").Ready(build.Start()).Deleting(), false, false},
		"ended badly, being deleted": {build.Pod("p").Phase(corev1.PodFailed).Deleting(), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pod.IsActive(tc.pod.Obj()); got != tc.active {
				t.Errorf("active is %t, want %t", got, tc.active)
			}
			if got := pod.IsFinished(tc.pod.Obj()); got != tc.finished {
				t.Errorf("finished is %t, want %t", got, tc.finished)
			}
		})
	}
}

func TestAvailable(t *testing.T) {
	start := build.Start()
	ready := func() *build.PodBuilder { return build.Pod("p").Ready(start) }
	type answer struct {
		Ready, Available bool
		Wait             time.Duration
	}
	cases := map[string]struct {
		pod             *build.PodBuilder
		minReadySeconds int32
		after           int // seconds since Start
		want            answer
	}{
		"ready, and none are asked for":               {ready(), 0, 0, answer{true, true, 0}},
		"ready, one second too early":                 {ready(), 10, 9, answer{true, false, time.Second}},
		"ready, just long enough":                     {ready(), 10, 10, answer{true, true, 0}},
		"ready by a clock that runs ahead of ours":    {ready(), 10, -5, answer{true, false, 15 * time.Second}},
		"ready, and fewer than none are asked for":    {ready(), -1, 0, answer{true, true, 0}},
		"ready without saying since when":             {build.Pod("p").Ready(time.Time{}), 10, 100, answer{true, false, 0}},
		"ready without saying since when, none asked": {build.Pod("p").Ready(time.Time{}), 0, 0, answer{true, true, 0}},
		"not ready":                                     {build.Pod("p").NotReady(), 0, 100, answer{}},
		"without conditions":                            {build.Pod("p").Phase(corev1.PodRunning), 0, 100, answer{}},
		"ready but pending":                             {ready().Phase(corev1.PodPending), 0, 100, answer{}},
		"ready but failed":                              {ready().Phase(corev1.PodFailed), 0, 100, answer{}},
		"readiness unknown":                             {ready().Condition(corev1.PodReady, corev1.ConditionUnknown, start), 0, 100, answer{}},
		"the gate of in-place updates is open":          {ready().Condition(pub.InPlaceUpdateReady, corev1.ConditionTrue, start), 0, 0, answer{true, true, 0}},
		"the gate of in-place updates is closed":        {ready().Condition(pub.InPlaceUpdateReady, corev1.ConditionFalse, start), 0, 100, answer{}},
		"the gate of in-place updates says nothing":     {ready().Condition(pub.InPlaceUpdateReady, corev1.ConditionUnknown, start), 0, 100, answer{}},
		"another gate is closed, but ready is true":     {ready().Condition(pub.KruisePodReady, corev1.ConditionFalse, start), 0, 0, answer{true, true, 0}},
		"in the state Normal":                           {ready().State(pub.LifecycleStateNormal), 0, 0, answer{true, true, 0}},
		"in the state PreparingNormal":                  {ready().State(pub.LifecycleStatePreparingNormal), 0, 100, answer{true, false, 0}},
		"in the state PreparingUpdate":                  {ready().State(pub.LifecycleStatePreparingUpdate), 0, 100, answer{true, false, 0}},
		"in the state Updating":                         {ready().State(pub.LifecycleStateUpdating), 0, 100, answer{true, false, 0}},
		"in the state Updated":                          {ready().State(pub.LifecycleStateUpdated), 0, 100, answer{true, false, 0}},
		"in the state PreparingDelete":                  {ready().State(pub.LifecycleStatePreparingDelete), 0, 100, answer{true, false, 0}},
		"in a state nobody knows":                       {ready().State("Resting"), 0, 100, answer{true, false, 0}},
		"not in Normal: time alone doesn't help":        {ready().State(pub.LifecycleStateUpdated), 10, 5, answer{true, false, 0}},
		"being deleted: availability is of those there": {ready().Deleting(), 0, 0, answer{true, true, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.pod.Obj()
			got := answer{Ready: pod.IsReady(p)}
			got.Available, got.Wait = pod.Available(p, tc.minReadySeconds, build.After(tc.after))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWaitingIsEnough holds Available to its word: when only time is missing, the Pod is available after that time, and not before.
func TestWaitingIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked := rapid.Int32Range(0, 100).Draw(t, "minReadySeconds")
		now := build.After(rapid.IntRange(-10, 110).Draw(t, "now")).Add(time.Duration(rapid.Int64Range(0, 999).Draw(t, "ms")) * time.Millisecond)
		for _, p := range build.AnyPods(4).Draw(t, "pods") {
			available, wait := pod.Available(p, asked, now)
			if available && (!pod.IsReady(p) || wait != 0) {
				t.Fatalf("available, ready %t, wait %s", pod.IsReady(p), wait)
			}
			if wait <= 0 {
				continue
			}
			if then, _ := pod.Available(p, asked, now.Add(wait)); !then {
				t.Fatalf("not available after waiting for %s", wait)
			}
			if then, _ := pod.Available(p, asked, now.Add(wait-time.Millisecond)); then {
				t.Fatalf("available before waiting for %s", wait)
			}
		}
	})
}

func TestState(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want pub.LifecycleStateType
	}{
		"none is Normal":         {&corev1.Pod{}, pub.LifecycleStateNormal},
		"an empty one is Normal": {build.Pod("p").State("").Obj(), pub.LifecycleStateNormal},
		"one":                    {build.Pod("p").State(pub.LifecycleStateUpdating).Obj(), pub.LifecycleStateUpdating},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pod.State(tc.pod); got != tc.want {
				t.Errorf("state is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestReadySince(t *testing.T) {
	if got := pod.ReadySince(build.Pod("p").Ready(build.After(3)).Obj()); !got.Equal(build.After(3)) {
		t.Errorf("a Pod is ready since %s, want %s", got, build.After(3))
	}
	if got := pod.ReadySince(build.Pod("p").NotReady().Obj()); !got.IsZero() {
		t.Errorf("a Pod that is not ready is ready since %s", got)
	}
	if got := pod.ReadySince(&corev1.Pod{}); !got.IsZero() {
		t.Errorf("a Pod without conditions is ready since %s", got)
	}
}

func TestSmallFacts(t *testing.T) {
	p := build.Pod("p").Restarts(2, 5, 3).Obj()
	p.Spec.Containers = []corev1.Container{{Name: "c0", Image: "a"}, {Name: "c1", Image: "b"}}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	if got := pod.MaxRestarts(p); got != 5 {
		t.Errorf("restarts are %d, want 5", got)
	}
	if got := pod.MaxRestarts(&corev1.Pod{}); got != 0 {
		t.Errorf("restarts of a Pod without containers are %d, want 0", got)
	}
	if !pod.HasReadinessGate(p, pub.InPlaceUpdateReady) || pod.HasReadinessGate(p, pub.KruisePodReady) {
		t.Error("the readiness gates are not those of the spec")
	}
	if pod.IsScheduled(p) || !pod.IsScheduled(build.Pod("p").Node("n1").Obj()) {
		t.Error("a Pod is scheduled if it has a node")
	}
	if pod.IsSpecifiedDelete(p) || !pod.IsSpecifiedDelete(build.Pod("p").Label(keys.SpecifiedDelete, "").Obj()) {
		t.Error("a Pod is to be deleted if it has the label, whatever its value")
	}
	if c := pod.Container(p, "c1"); c != &p.Spec.Containers[1] {
		t.Errorf("container c1 is %v", c)
	}
	if c := pod.Container(p, "none"); c != nil {
		t.Errorf("there is a container none: %v", c)
	}
	if s := pod.ContainerStatus(p, "c1"); s != &p.Status.ContainerStatuses[1] {
		t.Errorf("status of c1 is %v", s)
	}
	if s := pod.ContainerStatus(p, "none"); s != nil {
		t.Errorf("there is a status of none: %v", s)
	}
}

func TestSetCondition(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason string, since int) corev1.PodCondition {
		return corev1.PodCondition{Type: pub.KruisePodReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(build.After(since))}
	}
	other := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	cases := map[string]struct {
		before []corev1.PodCondition
		set    corev1.PodCondition
		want   []corev1.PodCondition
	}{
		"a new one is added, with the time": {
			[]corev1.PodCondition{other}, condition(corev1.ConditionTrue, "A", 0), []corev1.PodCondition{other, condition(corev1.ConditionTrue, "A", 60)},
		},
		"another status, another time": {
			[]corev1.PodCondition{condition(corev1.ConditionTrue, "A", 5), other}, condition(corev1.ConditionFalse, "B", 0),
			[]corev1.PodCondition{condition(corev1.ConditionFalse, "B", 60), other},
		},
		"another reason, the same time": {
			[]corev1.PodCondition{condition(corev1.ConditionTrue, "A", 5)}, condition(corev1.ConditionTrue, "B", 0),
			[]corev1.PodCondition{condition(corev1.ConditionTrue, "B", 5)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := build.Pod("p").Obj()
			p.Status.Conditions = tc.before
			pod.SetCondition(p, tc.set, build.After(60))
			if diff := cmp.Diff(tc.want, p.Status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetGate(t *testing.T) {
	start := build.Start()
	running := func() *build.PodBuilder {
		return build.Pod("p").Ready(start).Condition(corev1.ContainersReady, corev1.ConditionTrue, start)
	}
	closed := `the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False`
	cases := map[string]struct {
		pod         *build.PodBuilder
		gate        corev1.ConditionStatus
		wantReady   corev1.ConditionStatus
		wantReason  string
		wantMessage string
		wantSince   time.Time
	}{
		"closing it ends readiness at once": {running(), corev1.ConditionFalse, corev1.ConditionFalse, "ReadinessGatesNotReady", closed, build.After(60)},
		"closing it where containers aren't ready leaves Ready to the kubelet": {
			running().Condition(corev1.ContainersReady, corev1.ConditionFalse, start), corev1.ConditionFalse, corev1.ConditionTrue, "", "", start,
		},
		"opening it leaves Ready to the kubelet": {
			running().Condition(corev1.PodReady, corev1.ConditionFalse, start), corev1.ConditionTrue, corev1.ConditionFalse, "", "", start,
		},
		"closing it once more keeps the time": {
			running().Condition(corev1.PodReady, corev1.ConditionFalse, start), corev1.ConditionFalse, corev1.ConditionFalse, "ReadinessGatesNotReady", closed, start,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.pod.Obj()
			pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: tc.gate}, build.After(60))
			if got := pod.Condition(p, pub.InPlaceUpdateReady); got == nil || got.Status != tc.gate {
				t.Errorf("gate is %v, want %s", got, tc.gate)
			}
			want := &corev1.PodCondition{
				Type: corev1.PodReady, Status: tc.wantReady, Reason: tc.wantReason, Message: tc.wantMessage, LastTransitionTime: metav1.NewTime(tc.wantSince),
			}
			if diff := cmp.Diff(want, pod.Condition(p, corev1.PodReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetGateKeepsTheGenerationThatReadyIsAbout(t *testing.T) {
	p := build.Pod("p").Ready(build.Start()).Condition(corev1.ContainersReady, corev1.ConditionTrue, build.Start()).Obj()
	pod.Condition(p, corev1.PodReady).ObservedGeneration = 7
	pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse}, build.After(60))
	if got := pod.Condition(p, corev1.PodReady).ObservedGeneration; got != 7 {
		t.Errorf("Ready is about generation %d, want 7", got)
	}
}
