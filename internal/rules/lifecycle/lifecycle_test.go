package lifecycle

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
)

func at(seconds int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, seconds, 0, time.UTC)
}

// podIn returns a Pod in a state, which a node runs, with these labels and with the gate of hooks open.
func podIn(state pub.LifecycleStateType, labels map[string]string, finalizers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Finalizers: finalizers}}
	for key, value := range labels {
		p.Labels[key] = value
	}
	if state != "" {
		p.Labels[keys.LifecycleState] = string(state)
	}
	p.Spec.NodeName = "node-1"
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReady}}
	for _, condition := range []corev1.PodConditionType{pub.KruisePodReady, corev1.ContainersReady, corev1.PodReady} {
		pod.SetCondition(p, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue}, at(0))
	}
	return p
}

// byTwo is a hook by two labels and a finalizer.
func byTwo() *pub.LifecycleHook {
	return &pub.LifecycleHook{
		LabelsHandler:     map[string]string{"example.io/a": "true", "example.io/b": "true"},
		FinalizersHandler: []string{"example.io/f"},
	}
}

func ab(a, b string) map[string]string {
	return map[string]string{"example.io/a": a, "example.io/b": b}
}

func TestHooked(t *testing.T) {
	cases := map[string]struct {
		pod           *corev1.Pod
		hook          *pub.LifecycleHook
		hooked, allOf bool
	}{
		"no hook":                       {podIn("", ab("true", "true"), "example.io/f"), nil, false, false},
		"none of the hook":              {podIn("", nil, "example.io/other"), byTwo(), false, false},
		"labels of other values":        {podIn("", ab("false", "false")), byTwo(), false, false},
		"one label":                     {podIn("", ab("false", "true")), byTwo(), true, false},
		"both labels":                   {podIn("", ab("true", "true")), byTwo(), true, false},
		"the finalizer":                 {podIn("", nil, "example.io/f"), byTwo(), true, false},
		"both labels and the finalizer": {podIn("", ab("true", "true"), "x", "example.io/f"), byTwo(), true, true},
		"an empty label that is wanted but not there": {
			podIn("", nil), &pub.LifecycleHook{LabelsHandler: map[string]string{"example.io/a": ""}}, false, false,
		},
		"an empty hook": {podIn("", nil), &pub.LifecycleHook{}, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Hooked(tc.pod, tc.hook); got != tc.hooked {
				t.Errorf("hooked: %v, want %v", got, tc.hooked)
			}
			if got := AllHooked(tc.pod, tc.hook); got != tc.allOf {
				t.Errorf("all hooked: %v, want %v", got, tc.allOf)
			}
		})
	}
}

func TestNext(t *testing.T) {
	const (
		preparingNormal = pub.LifecycleStatePreparingNormal
		normal          = pub.LifecycleStateNormal
		preparingUpdate = pub.LifecycleStatePreparingUpdate
		updating        = pub.LifecycleStateUpdating
		updated         = pub.LifecycleStateUpdated
		preparingDelete = pub.LifecycleStatePreparingDelete
		stay            = pub.LifecycleStateType("")
	)
	unscheduled := podIn(preparingNormal, nil)
	unscheduled.Spec.NodeName = ""
	byLabels := &pub.LifecycleHook{LabelsHandler: ab("true", "true")}
	update := &pub.Lifecycle{InPlaceUpdate: byLabels}
	normalHook := &pub.Lifecycle{PreNormal: byLabels}
	done, doneAt := Facts{UpdateDone: true}, Facts{UpdateDone: true, AtTarget: true}
	with := func(f Facts, lc *pub.Lifecycle) Facts { f.Lifecycle = lc; return f }
	cases := map[string]struct {
		pod  *corev1.Pod
		f    Facts
		want pub.LifecycleStateType
	}{
		"a new Pod on a node":      {podIn(preparingNormal, nil), done, normal},
		"a new Pod without a node": {unscheduled, done, stay},
		"a new Pod that its hook does not let in": {
			podIn(preparingNormal, ab("true", "false")),
			with(done, normalHook),
			stay,
		},
		"a new Pod that its hook lets in": {
			podIn(preparingNormal, ab("true", "true")),
			with(done, normalHook),
			normal,
		},
		"a Pod in service":                                {podIn(normal, nil), doneAt, stay},
		"a Pod of old times without a state":              {podIn("", nil), doneAt, stay},
		"updating":                                        {podIn(updating, nil), with(Facts{}, update), stay},
		"updated, without any hook":                       {podIn(updating, nil), done, normal},
		"updated, with a hook that is for something else": {podIn(updating, nil), with(done, normalHook), normal},
		"updated, and the hook lets it in at once":        {podIn(updating, ab("true", "true")), with(done, update), normal},
		"updated, and the hook does not let it in":        {podIn(updating, ab("true", "false")), with(done, update), updated},
		"updated, and waiting on":                         {podIn(updated, ab("false", "true")), with(done, update), stay},
		"updated, and the hook lets it in now":            {podIn(updated, ab("true", "true")), with(done, update), normal},
		"updated, and the hook has gone":                  {podIn(updated, nil), done, normal},
		"waiting for its update":                          {podIn(preparingUpdate, ab("true", "false")), with(done, update), stay},
		"waiting for an update that nobody wants any more": {
			podIn(preparingUpdate, ab("true", "true")),
			with(doneAt, update),
			normal,
		},
		"half drained for an update that nobody wants any more": {
			podIn(preparingUpdate, ab("false", "true")),
			with(doneAt, update),
			updated,
		},
		"drained for an update that nobody wants, without a hook": {podIn(preparingUpdate, nil), doneAt, normal},
		"drained during another update that is still under way": {
			podIn(preparingUpdate, ab("true", "true")),
			with(Facts{AtTarget: true}, update),
			stay,
		},
		"to be deleted":                 {podIn(preparingDelete, nil), doneAt, stay},
		"to be deleted, with all hooks": {podIn(preparingDelete, ab("true", "true")), with(doneAt, update), stay},
		"a state that nobody knows":     {podIn("Confused", nil), doneAt, stay},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state, moves := Next(tc.pod, tc.f)
			if !moves {
				state = stay
			}
			if state != tc.want {
				t.Errorf("it moves to %q, want %q", state, tc.want)
			}
		})
	}
}

func TestBeforeUpdate(t *testing.T) {
	hook := &pub.Lifecycle{InPlaceUpdate: byTwo()}
	const preparing, updating = pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdating
	cases := map[string]struct {
		pod       *corev1.Pod
		lifecycle *pub.Lifecycle
		want      pub.LifecycleStateType
		mayStart  bool
	}{
		"in service, without hooks":            {podIn(pub.LifecycleStateNormal, nil), nil, updating, true},
		"in service, hooked":                   {podIn(pub.LifecycleStateNormal, ab("true", "false")), hook, preparing, false},
		"in service, not hooked":               {podIn(pub.LifecycleStateNormal, ab("false", "false")), hook, updating, true},
		"of old times without a state, hooked": {podIn("", nil, "example.io/f"), hook, preparing, false},
		"not in service yet, hooked":           {podIn(pub.LifecycleStatePreparingNormal, nil, "example.io/f"), hook, preparing, false},
		"not in service yet, not hooked":       {podIn(pub.LifecycleStatePreparingNormal, nil), hook, updating, true},
		"waiting, and half drained":            {podIn(preparing, ab("false", "true")), hook, preparing, false},
		"waiting, and drained":                 {podIn(preparing, ab("false", "false")), hook, updating, true},
		"waiting for a hook that has gone":     {podIn(preparing, ab("true", "true")), nil, updating, true},
		"in the middle of an update, hooked":   {podIn(updating, ab("true", "true")), hook, updating, true},
		"updated, and not let in yet":          {podIn(pub.LifecycleStateUpdated, ab("false", "false")), hook, preparing, false},
		"updated, without a hook":              {podIn(pub.LifecycleStateUpdated, nil), nil, updating, true},
		"to be deleted": {
			podIn(pub.LifecycleStatePreparingDelete, nil),
			nil,
			pub.LifecycleStatePreparingDelete,
			false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state, mayStart := BeforeUpdate(tc.pod, tc.lifecycle)
			if state != tc.want || mayStart != tc.mayStart {
				t.Errorf("it moves to %s, and may start: %v; want %s, %v", state, mayStart, tc.want, tc.mayStart)
			}
		})
	}
}

func TestEnterWritesStateAndTime(t *testing.T) {
	zone := time.FixedZone("east", 2*60*60)
	p := &corev1.Pod{}
	Enter(p, pub.LifecycleStatePreparingNormal, nil, at(5).In(zone))
	want := metav1.ObjectMeta{
		Labels:      map[string]string{"lifecycle.apps.kruise.io/state": "PreparingNormal"},
		Annotations: map[string]string{"lifecycle.apps.kruise.io/timestamp": "2026-03-01T14:00:05+02:00"},
	}
	if diff := cmp.Diff(want, p.ObjectMeta); diff != "" {
		t.Error(diff)
	}
	Enter(p, pub.LifecycleStatePreparingNormal, nil, at(9))
	if diff := cmp.Diff(want, p.ObjectMeta); diff != "" {
		t.Errorf("entering the same state again: %s", diff)
	}
	if p.Status.Conditions != nil {
		t.Errorf("a Pod without the gate got the conditions %v", p.Status.Conditions)
	}
}

func TestAPodThatWasUpdatedIsDrainedAgainForANewerRevision(t *testing.T) {
	lc := &pub.Lifecycle{InPlaceUpdate: byTwo()}
	p := podIn(pub.LifecycleStateUpdated, ab("false", "true"), "other")
	Enter(p, pub.LifecycleStatePreparingUpdate, lc, at(1))
	if !AllHooked(p, lc.InPlaceUpdate) {
		t.Errorf("the Pod has labels %v and finalizers %v, want its whole hook", p.Labels, p.Finalizers)
	}
	if diff := cmp.Diff([]string{"other", "example.io/f"}, p.Finalizers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("false", lc.InPlaceUpdate.LabelsHandler["example.io/a"]); diff == "" {
		t.Error("the hook itself was changed")
	}

	fromNormal := podIn(pub.LifecycleStateNormal, ab("false", "true"))
	Enter(fromNormal, pub.LifecycleStatePreparingUpdate, lc, at(1))
	if diff := cmp.Diff("false", fromNormal.Labels["example.io/a"]); diff != "" {
		t.Errorf("a Pod in service got a label of its hook: %s", diff)
	}
}

// Two labels hold the Pod: it goes when both have let go, and is back when both are there again.
func TestAnUpdateHeldByTwoLabels(t *testing.T) {
	lc := &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: ab("true", "true")}}
	p := podIn(pub.LifecycleStateNormal, ab("true", "true"))
	set := func(a, b string) { p.Labels["example.io/a"], p.Labels["example.io/b"] = a, b }
	want := func(state pub.LifecycleStateType) {
		t.Helper()
		if got := pod.State(p); got != state {
			t.Fatalf("the Pod is in %s, want %s", got, state)
		}
	}
	begin := func() {
		state, _ := BeforeUpdate(p, lc)
		Enter(p, state, lc, at(1))
	}
	settle := func() {
		if state, moves := Next(p, Facts{Lifecycle: lc, UpdateDone: true}); moves {
			Enter(p, state, lc, at(2))
		}
	}
	begin()
	want(pub.LifecycleStatePreparingUpdate)
	set("false", "true")
	begin()
	want(pub.LifecycleStatePreparingUpdate)
	set("false", "false")
	begin()
	want(pub.LifecycleStateUpdating)
	settle()
	want(pub.LifecycleStateUpdated)
	set("true", "false")
	settle()
	want(pub.LifecycleStateUpdated)
	set("true", "true")
	settle()
	want(pub.LifecycleStateNormal)
}

// However its hooks, updates and deletions come and go, a Pod that is let in and is wanted as it is ends in service, without a mark of ours.
func TestEveryPodComesBackIntoService(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lc := &pub.Lifecycle{}
		hooks := []**pub.LifecycleHook{&lc.PreDelete, &lc.InPlaceUpdate, &lc.PreNormal}
		for _, hook := range hooks {
			if rapid.Bool().Draw(t, "hook") {
				*hook = byTwo()
				(*hook).MarkPodNotReady = hook != &lc.PreNormal && rapid.Bool().Draw(t, "marks")
			}
		}
		p := podIn(pub.LifecycleStatePreparingNormal, ab("true", "true"), "example.io/f")
		for range rapid.IntRange(0, 20).Draw(t, "moves") {
			switch rapid.IntRange(0, 4).Draw(t, "move") {
			case 0:
				state, _ := BeforeUpdate(p, lc)
				Enter(p, state, lc, at(1))
			case 1:
				Enter(p, pub.LifecycleStatePreparingDelete, lc, at(2))
			case 2:
				if pod.State(p) == pub.LifecycleStatePreparingDelete {
					Enter(p, pub.LifecycleStatePreparingNormal, lc, at(3))
				}
			case 3:
				p.Labels["example.io/a"] = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "label")
			default:
				f := Facts{Lifecycle: lc, UpdateDone: rapid.Bool().Draw(t, "done"), AtTarget: rapid.Bool().Draw(t, "at target")}
				if state, moves := Next(p, f); moves {
					if state == pod.State(p) {
						t.Fatalf("it moves from %s to itself", state)
					}
					Enter(p, state, lc, at(4))
				}
			}
		}
		p.Labels["example.io/a"] = "true"
		if pod.State(p) == pub.LifecycleStatePreparingDelete {
			Enter(p, pub.LifecycleStatePreparingNormal, lc, at(5))
		}
		for range 3 {
			if state, moves := Next(p, Facts{Lifecycle: lc, UpdateDone: true, AtTarget: true}); moves {
				Enter(p, state, lc, at(6))
			}
		}
		if c := pod.Condition(p, pub.KruisePodReady); pod.State(p) != pub.LifecycleStateNormal || c.Status != corev1.ConditionTrue {
			t.Fatalf("the Pod ends in %s, KruisePodReady %s %s", pod.State(p), c.Status, c.Message)
		}
	})
}
