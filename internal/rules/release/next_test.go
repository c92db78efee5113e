package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func batches(steps ...v1beta1.Step) Plan {
	return Plan{Style: v1beta1.RollingStylePartition, Steps: steps}
}

func withTraffic(p Plan) Plan {
	p.Routed, p.Grace = true, 3*time.Second
	return p
}

// show is what kubectl get shows.
type show struct {
	Phase, Reason string
	Step, Next    int32
	State         string
	Updated       int32
	Says          string
}

func (w *world) show() show {
	m := machine{out: Decision{Status: w.status}}
	s := show{Phase: string(w.status.Phase), Reason: m.reasonNow(), Updated: w.seen.Workload.Updated, Says: w.status.Message}
	if p := w.at(); p != nil {
		s.Step, s.Next, s.State = p.CurrentStepIndex, p.NextStepIndex, string(p.CurrentStepState)
	}
	return s
}

func wantShow(t *testing.T, w *world, want show) {
	t.Helper()
	got := w.show()
	if want.Says != "" && strings.Contains(got.Says, want.Says) {
		got.Says = want.Says
	}
	if want.Says == "" {
		got.Says = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.broken != "" {
		t.Errorf("broken: %s", w.broken)
	}
}

func wantLog(t *testing.T, w *world, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestBatchesOfADeployment(t *testing.T) {
	w := newWorld(batches(step("20%", ""), step("50%", ""), step("100%", "")))
	wantShow(t, w, show{"Healthy", "Initializing", 3, -1, "Completed", 0, ""})
	w.template("v2")
	w.round(whole)
	wantShow(t, w, show{"Progressing", "Initializing", 1, 2, "BeforeStepUpgrade", 0, ""})
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 2, "step(1/3), waiting for approval: confirm"})
	w.approve()
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 2, 3, "StepPaused", 5, "step(2/3)"})
	w.approve()
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 3, -1, "Completed", 10, ""})
	wantLog(t, w, "Upgrade 1", "Upgrade 2", "Upgrade 3", "Resume", "Release", "Unmark")
	if got := w.status.Approvals; len(got) != 2 || got[0].Step != 1 || got[1].Step != 2 {
		t.Errorf("approvals %v, want steps 1 and 2", got)
	}
}

func TestNoTrafficBeforeTheStepThatLeadsIt(t *testing.T) {
	plan := withTraffic(batches(step("20%", "20%"), step("100%", "")))
	plan.Style = v1beta1.RollingStyleCanary
	w := newWorld(plan)
	w.template("v2")
	w.wait()
	wantLog(t, w, "Pin", "Upgrade 1", "CreateService", "SetRoutes 1")
	w.approve()
	w.wait()
	wantLog(t, w, "Pin", "Upgrade 1", "CreateService", "SetRoutes 1", "Unpin", "RestoreRoutes", "RemoveService", "Upgrade 2", "Resume", "Release", "Unmark")
	if left := w.clean(); left != "" {
		t.Error(left)
	}
}

func TestGoingBack(t *testing.T) {
	blueGreen := withTraffic(batches(step("100%", "0%"), step("100%", "50%")))
	blueGreen.Style = v1beta1.RollingStyleBlueGreen
	cases := map[string]struct {
		plan   Plan
		paused bool
		want   []string
	}{
		"without traffic":       {batches(step(5, ""), step("100%", "")), false, []string{"Upgrade 1", "Resume", "Release", "Unmark"}},
		"while paused, trap T4": {batches(step(5, ""), step("100%", "")), true, []string{"Upgrade 1", "Hold", "Resume", "Release", "Unmark"}},
		"traffic goes back before Pods": {withTraffic(batches(step(5, "50%"), step("100%", ""))), false,
			[]string{"Pin", "Upgrade 1", "CreateService", "SetRoutes 1", "RestoreRoutes", "Resume", "Release", "Unpin", "RemoveService", "Unmark"}},
		"blueGreen": {blueGreen, false,
			[]string{"Pin", "Upgrade 1", "CreateService", "SetRoutes 1", "RestoreRoutes", "Resume", "Unpin", "RemoveService", "Release", "Unmark"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.plan)
			w.template("v2")
			w.wait()
			w.plan.Paused = tc.paused
			w.wait()
			w.template("v1")
			w.round(whole)
			if got := w.show().Reason; got != "Cancelling" {
				t.Errorf("reason %s", got)
			}
			w.plan.Paused = false
			w.wait()
			wantLog(t, w, tc.want...)
			if w.seen.Workload.Updated != 0 || w.show().Phase != "Healthy" {
				t.Errorf("ended as %+v", w.show())
			}
			for _, c := range w.status.Conditions {
				if c.Type == v1beta1.ConditionSucceeded && c.Status != "False" {
					t.Errorf("a rollback counts as a success: %+v", c)
				}
			}
		})
	}
}

func TestAThirdVersion(t *testing.T) {
	w := newWorld(withTraffic(batches(step(2, "20%"), step("100%", ""))))
	w.template("v2")
	w.wait()
	w.template("v3")
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 2, ""})
	wantLog(t, w, "Pin", "Upgrade 1", "CreateService", "SetRoutes 1", "RestoreRoutes", "Release", "RemoveService", "Upgrade 1", "CreateService", "SetRoutes 1")
	if p := w.at(); p.StableRevision != "v1" || p.PodTemplateHash != "v3" {
		t.Errorf("from %s to %s, want v1 to v3", p.StableRevision, p.PodTemplateHash)
	}
}

// TestAThirdVersionThatNobodySaw: the template was v3 for a moment, in which the BatchRelease began, and is v2 again before the Rollout looks.
func TestAThirdVersionThatNobodySaw(t *testing.T) {
	w := newWorld(batches(step(2, ""), step("100%", "")))
	w.template("v2")
	w.wait()
	w.log = nil
	w.seen.Batch.Another, w.seen.Batch.Step = true, 0
	w.wait()
	wantLog(t, w, "Release", "Upgrade 1")
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 2, ""})
}

func TestJumps(t *testing.T) {
	for name, tc := range map[string]struct{ to, step, next int32 }{
		"forward": {4, 4, -1}, "to the step itself": {2, 2, 3}, "back": {1, 1, 2}, "beyond": {9, 2, 3}, "to none": {0, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(batches(step(1, ""), step(2, ""), step(3, ""), step(4, "")))
			w.template("v2")
			w.wait()
			w.approve()
			w.wait()
			w.at().NextStepIndex = tc.to
			w.wait()
			wantShow(t, w, show{"Progressing", "InRolling", tc.step, tc.next, "StepPaused", max(tc.step, 2), ""})
		})
	}
}

func TestAPlanThatChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		first   v1beta1.Step
		routes  string
		updated int32
	}{
		"more traffic":                       {step(2, "10%"), "10%", 2},
		"fewer Pods skip no step, trap T5":   {step(1, "5%"), "5%", 2},
		"more Pods":                          {step(4, "5%"), "5%", 4},
		"as many Pods as the step after has": {step(5, "5%"), "5%", 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(withTraffic(batches(step(2, "5%"), step(5, "50%"), step("100%", ""))))
			w.template("v2")
			w.wait()
			w.plan.Steps[0] = tc.first
			w.plan.Hash = Hash(w.plan.Steps)
			w.wait()
			wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", tc.updated, ""})
			if w.seen.Traffic.Routes != tc.routes {
				t.Errorf("routes %s, want %s", w.seen.Traffic.Routes, tc.routes)
			}
		})
	}
}

func TestAnApprovalOfAnotherStep(t *testing.T) {
	w := newWorld(batches(step(1, ""), step(2, ""), step(3, "")))
	w.template("v2")
	w.wait()
	w.approve()
	w.round(beforeActing)
	w.approve() // a second click, while step 2 is under way: trap T19
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 2, 3, "StepPaused", 2, ""})
}

func TestPausesAndDeadlines(t *testing.T) {
	plan := batches(step(1, ""), step(2, ""))
	plan.Deadline = time.Minute
	w := newWorld(plan)
	w.template("v2")
	w.wait()
	w.approve()
	w.seen.Batch.Message = "Pod web-1: ImagePullBackOff"
	w.round(beforeActing)
	w.seen.Batch.Allowed, w.seen.Batch.Step = 2, 0 // its Pods never come up
	for range 30 {
		w.seen.Now = w.seen.Now.Add(3 * time.Second)
		w.status = Next(w.plan, w.status, w.seen).Status
	}
	m := machine{out: Decision{Status: w.status}}
	at := m.out.Status.Conditions[0]
	if at.Reason != "StepTimeout" || !strings.Contains(at.Message, "ImagePullBackOff") || at.Status != "False" {
		t.Errorf("condition %+v", at)
	}
	again := Next(w.plan, w.status, w.seen)
	if !same(again.Status, w.status) {
		t.Error("a release that waits writes its status all the time")
	}
	w.seen.Batch.Step = 2
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 2, -1, "StepPaused", 2, ""})
}

func TestDisablingAndDeletion(t *testing.T) {
	w := newWorld(withTraffic(batches(step(2, "20%"), step("100%", ""))))
	w.template("v2")
	w.wait()
	w.plan.Disabled = true
	w.wait()
	if left := w.clean(); left != "" || w.status.Phase != "Disabled" || w.seen.Workload.Updated != 10 {
		t.Errorf("%s, phase %s, %d updated", left, w.status.Phase, w.seen.Workload.Updated)
	}
	w.plan.Disabled = false
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 2, -1, "Completed", 10, ""})
	w = newWorld(withTraffic(batches(step(2, "20%"), step("100%", ""))))
	w.template("v2")
	w.wait()
	w.seen.Workload, w.plan.Deleted = nil, true // trap T21
	w.wait()
	if left := w.clean(); left != "" || !w.done {
		t.Errorf("%s, done %v", left, w.done)
	}
}

func TestAWorkloadThatGoes(t *testing.T) {
	w := newWorld(withTraffic(batches(step(2, "20%"), step("100%", ""))))
	w.template("v2")
	w.wait()
	w.seen.Workload = nil
	w.wait()
	if left := w.clean(); left != "" || w.status.Phase != "Initial" || w.status.Message != "workload not found" {
		t.Errorf("%s, phase %s: %s", left, w.status.Phase, w.status.Message)
	}
}

// TestReleasesWhateverHappens has users, crashes and time come in any order. No step is skipped, no request is led to nothing, the same
// situation has the same decision, and at the end nothing of the release is left.
func TestReleasesWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := batches(step(1, ""), step("30%", "20%"), step("60%", ""), passing(step("80%", "50%")), step("100%", ""))
		if rapid.Bool().Draw(t, "routed") {
			plan = withTraffic(plan)
		}
		plan.Style = rapid.SampledFrom([]Style{v1beta1.RollingStylePartition, v1beta1.RollingStyleCanary, v1beta1.RollingStyleBlueGreen}).Draw(t, "style")
		plan.OneService = rapid.Bool().Draw(t, "one Service")
		w := newWorld(plan)
		w.template("v2")
		approved := map[int32]bool{4: true} // it does not wait for approval
		highest := int32(0)
		for range rapid.IntRange(5, 80).Draw(t, "events") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0, 1:
				if p := w.at(); p != nil && w.status.Phase == v1beta1.RolloutPhaseProgressing {
					if p.CurrentStepState == v1beta1.StepStatePaused {
						approved[p.CurrentStepIndex] = true
					}
					w.approve()
				}
			case 2:
				w.plan.Paused = !w.plan.Paused
			case 3:
				w.seen.Now = w.seen.Now.Add(2 * time.Second)
			default:
				w.seen.Now = w.seen.Now.Add(time.Second)
				w.round(crash(rapid.IntRange(0, 2).Draw(t, "crash")))
			}
			if again, once := Next(w.plan, w.status, w.seen), Next(w.plan, w.status, w.seen); cmp.Diff(again, once) != "" {
				t.Fatal("the same situation has two decisions")
			}
			if now := w.seen.Batch.Allowed; now > highest {
				if now != highest+1 || now > 1 && !approved[now-1] {
					t.Fatalf("step %d runs after step %d, approved %v", now, highest, approved)
				}
				highest = now
			}
			if w.broken != "" {
				t.Fatalf("%s after %v", w.broken, w.log)
			}
		}
		w.plan.Paused = false
		switch end := rapid.SampledFrom([]string{"roll back", "delete", "disable"}).Draw(t, "end"); {
		case end == "delete":
			w.plan.Deleted = true
		case end == "disable" || !w.seen.Workload.Marked:
			w.plan.Disabled = true
		default:
			w.template("v1")
		}
		for range 40 {
			w.seen.Now = w.seen.Now.Add(time.Second)
			w.round(crash(rapid.IntRange(0, 2).Draw(t, "crash at the end")))
		}
		w.wait()
		if w.broken != "" || w.clean() != "" {
			t.Fatalf("%s %s after %v", w.broken, w.clean(), w.log)
		}
	})
}

// TestASharedTrafficRouting is joined before the first Pod, and left when traffic goes back: on a rollback, before any new Pod goes.
func TestASharedTrafficRouting(t *testing.T) {
	plan := Plan{Steps: []v1beta1.Step{step(1, ""), step("100%", "")}, Shared: true, Style: v1beta1.RollingStyleCanary}
	before := func(w *world, first, then Verb) {
		t.Helper()
		a, b := slices.Index(w.log, string(first)), slices.IndexFunc(w.log, func(line string) bool { return strings.HasPrefix(line, string(then)) })
		if a < 0 || b < 0 || a > b {
			t.Errorf("%s does not come before %s: %v", first, then, w.log)
		}
	}
	w := newWorld(plan)
	w.seen.Traffic.Missing = "TrafficRouting gray"
	w.template("v2")
	w.wait()
	if !strings.Contains(w.status.Message, "TrafficRouting gray is not there") || w.seen.Batch.Exists {
		t.Errorf("without the TrafficRouting: %s", w.status.Message)
	}
	w.seen.Traffic.Missing = ""
	w.wait()
	before(w, Join, Upgrade)
	w.approve()
	w.wait()
	before(w, Leave, Resume)
	if left := w.clean(); left != "" || w.broken != "" {
		t.Errorf("%s %s", left, w.broken)
	}

	back := newWorld(plan)
	back.template("v2")
	back.wait()
	back.template("v1")
	back.wait()
	before(back, Leave, Resume)
	if left := back.clean(); left != "" || back.broken != "" {
		t.Errorf("%s %s", left, back.broken)
	}
}
