package release

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/analysis"
)

// analysed returns a step with an analysis of one check.
func analysed(s v1beta1.Step, onFailure v1beta1.FailureAction) v1beta1.Step {
	s.Analysis = &v1beta1.Analysis{OnFailure: onFailure, Checks: []v1beta1.Check{{
		Name: "errors", Count: ptr.To[int32](2), IntervalSeconds: ptr.To[int32](10), InconclusiveLimit: ptr.To[int32](0),
		Prometheus: &v1beta1.PrometheusCheck{Success: "< 1"},
	}}}
	return s
}

func telling(phase v1beta1.AnalysisPhase) func(analysis.Request) v1beta1.AnalysisPhase {
	return func(analysis.Request) v1beta1.AnalysisPhase { return phase }
}

func TestAnAnalysisHoldsAStepUntilItIsOver(t *testing.T) {
	w := newWorld(withTraffic(batches(analysed(step("20%", "20%"), ""), step("100%", ""))))
	w.outcome = telling(v1beta1.AnalysisSuccessful)
	w.template("v2")
	for range 9 {
		w.seen.Now = w.seen.Now.Add(4 * time.Second)
		w.round(whole)
	}
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepMetricsAnalysis", 2, "step(1/2), analysing: check errors: 1 of 2 measurements made"})
	w.approve() // too early
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 2, "waiting for approval"})
	if a := w.at().Analysis; a.Phase != v1beta1.AnalysisSuccessful || len(w.measured) != 2 {
		t.Errorf("%+v after %d measurements", a, len(w.measured))
	}
	w.approve()
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 2, -1, "Completed", 10, ""})
}

// TestAFailedAnalysis shows what it says, and each of the ways on.
func TestAFailedAnalysis(t *testing.T) {
	paused := func(phase v1beta1.AnalysisPhase, onFailure v1beta1.FailureAction) *world {
		w := newWorld(batches(step(1, ""), analysed(passing(step(3, "")), onFailure), step("100%", "")))
		w.outcome = telling(phase)
		w.template("v2")
		w.wait()
		w.approve()
		w.wait()
		wantShow(t, w, show{"Progressing", "AnalysisFailed", 2, 3, "StepPaused", 3, "approve the step to go on nevertheless, jump to another one, or put the old template back"})
		return w
	}
	w := paused(v1beta1.AnalysisFailed, "")
	if c := w.status.Conditions[0]; c.Status != "False" || !strings.Contains(c.Message, "check errors: 1 of 1 measurements failed, and 0 may; last values 7") {
		t.Errorf("condition %+v", c)
	}
	again := Next(w.plan, w.status, w.seen)
	if !same(again.Status, w.status) || len(again.Do) > 0 {
		t.Error("a release that is held writes all the time")
	}
	w.approve()
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 3, -1, "Completed", 10, ""})
	if got := w.status.Approvals; len(got) != 2 || got[1].Step != 2 || got[1].Despite != "Analysis" {
		t.Errorf("approvals %+v", got)
	}
	w = paused(v1beta1.AnalysisInconclusive, v1beta1.FailureRollback) // what can't tell never rolls back
	w.at().NextStepIndex = 1
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 3, ""})
	w = paused(v1beta1.AnalysisFailed, v1beta1.FailurePause)
	w.template("v1")
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 2, -1, "Completed", 0, ""})
	w = paused(v1beta1.AnalysisFailed, v1beta1.FailurePause)
	w.outcome = telling(v1beta1.AnalysisSuccessful)
	w.plan.Steps[1].Analysis.Checks[0].FailureLimit = 1
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 3, -1, "Completed", 10, ""})
}

func TestARollbackWithoutAPerson(t *testing.T) {
	plan := withTraffic(batches(analysed(step(5, "50%"), v1beta1.FailureRollback), step("100%", "")))
	w := newWorld(plan)
	w.outcome = telling(v1beta1.AnalysisFailed)
	w.template("v2")
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 1, -1, "Completed", 0, ""})
	wantLog(t, w, "Pin", "Upgrade 1", "CreateService", "SetRoutes 1", "RestoreRoutes", "PutBack", "Resume", "Release", "Unpin", "RemoveService", "Unmark")
	if left := w.clean(); left != "" || w.seen.Workload.Update != "v1" {
		t.Errorf("%s, at %s", left, w.seen.Workload.Update)
	}
	end := w.status.Conditions[slices.IndexFunc(w.status.Conditions, func(c v1beta1.RolloutCondition) bool { return c.Type == v1beta1.ConditionSucceeded })]
	if end.Status != "False" || !strings.Contains(end.Message, "because check errors: 1 of 1 measurements failed") {
		t.Errorf("condition %+v", end)
	}
	if r := w.status.Rejected; r == nil || r.Revision != "v2" {
		t.Fatalf("rejected %+v", r)
	}
	w.log = nil
	w.template("v2") // a GitOps tool
	w.wait()
	wantShow(t, w, show{"Progressing", "Rejected", 1, 2, "StepPaused", 0, "this revision was rolled back before: check errors"})
	wantLog(t, w)
	again := Next(w.plan, w.status, w.seen)
	if !same(again.Status, w.status) || len(again.Do) > 0 {
		t.Error("a release that is held writes all the time")
	}
	w.outcome = telling(v1beta1.AnalysisSuccessful)
	w.approve()
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 5, "waiting for approval"})
	if got := w.status.Approvals; len(got) != 1 || got[0].Despite != "Rejected" || w.status.Rejected != nil {
		t.Errorf("approvals %+v, rejected %+v", got, w.status.Rejected)
	}
}

// TestAnotherTemplateDuringARollback has somebody write it at each moment of a rollback. It is never rolled out without steps.
func TestAnotherTemplateDuringARollback(t *testing.T) {
	for _, template := range []string{"v2", "v3"} {
		for rounds := range 12 {
			w := newWorld(withTraffic(batches(analysed(step(5, "50%"), v1beta1.FailureRollback), step("100%", ""))))
			w.outcome = telling(v1beta1.AnalysisFailed)
			w.template("v2")
			for w.show().Reason != "Cancelling" {
				w.seen.Now = w.seen.Now.Add(4 * time.Second)
				w.round(whole)
			}
			for range rounds {
				w.seen.Now = w.seen.Now.Add(4 * time.Second)
				w.round(whole)
			}
			w.outcome = telling(v1beta1.AnalysisSuccessful)
			put := w.seen.Workload.Update == "v1"
			w.template(template)
			w.wait()
			reason := "InRolling"
			if template == "v2" {
				reason = "Rejected"
			}
			if template == "v2" && !put { // it was there all the time
				continue
			}
			if got := w.show(); got.Reason != reason || got.State != "StepPaused" || w.seen.Workload.Updated > 5 || w.broken != "" {
				t.Errorf("%s after %d rounds: %+v %s", template, rounds, got, w.broken)
			}
		}
	}
}

// TestAToolThatWritesTheFailedTemplateAgainAtOnce does not make the controller write for ever.
func TestAToolThatWritesTheFailedTemplateAgainAtOnce(t *testing.T) {
	w := newWorld(batches(analysed(step(5, ""), v1beta1.FailureRollback), step("100%", "")))
	w.outcome = telling(v1beta1.AnalysisFailed)
	w.template("v2")
	for range 60 {
		w.seen.Now = w.seen.Now.Add(4 * time.Second)
		w.round(whole)
		if w.seen.Workload.Update == "v1" {
			w.template("v2")
		}
	}
	if w.show().Reason != "Rejected" || w.seen.Workload.Updated == 10 {
		t.Errorf("%+v", w.show())
	}
	written := w.seen.Workload.Generation
	w.wait()
	if w.seen.Workload.Generation != written {
		t.Errorf("the template is still written: %v", w.log)
	}
}

func TestTheGuard(t *testing.T) {
	crash := func(action v1beta1.GuardAction) *world {
		w := newWorld(batches(step(1, ""), step(3, ""), step("100%", "")))
		if action != "" {
			w.plan.Guard = &v1beta1.Guard{OnFailure: action}
		}
		w.crashing = true
		w.template("v2")
		w.wait()
		wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 1, "waiting for approval"}) // one Pod proves nothing
		w.approve()
		w.wait()
		return w
	}
	w := crash("")
	wantShow(t, w, show{"Progressing", "GuardFailed", 2, 3, "StepPaused", 3, "held: 3 of 3 updated Pods failed, and 0 of 10 old ones; Pod new-0: a container exited with code 1"})
	wantLog(t, w, "Upgrade 1", "Upgrade 2", "Hold")
	again := Next(w.plan, w.status, w.seen)
	if !same(again.Status, w.status) || len(again.Do) > 0 {
		t.Errorf("a release that is held writes all the time: %+v", again.Do)
	}
	w.approve() // go on nevertheless, with this step: its own pause is still to come
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 2, 3, "StepPaused", 3, "waiting for approval"})
	w.approve()
	w.wait()
	wantShow(t, w, show{"Healthy", "Completed", 3, -1, "Completed", 10, ""})
	w = crash("")
	w.at().NextStepIndex = 1
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 3, "waiting for approval"})
	w = crash("")
	w.crashing = false
	w.template("v3") // the fix
	w.wait()
	wantShow(t, w, show{"Progressing", "InRolling", 1, 2, "StepPaused", 1, "waiting for approval"})
	if g := w.at().Guard; g.OldPods != 10 || g.Phase != v1beta1.AnalysisRunning {
		t.Errorf("the new release is compared with %+v", g)
	}
	w = crash(v1beta1.GuardRollback)
	wantShow(t, w, show{"Healthy", "Completed", 2, -1, "Completed", 0, ""})
	if r := w.status.Rejected; r == nil || !strings.Contains(r.Message, "3 of 3 updated Pods failed") {
		t.Errorf("rejected %+v", r)
	}
	w = crash(v1beta1.GuardNone)
	wantShow(t, w, show{"Progressing", "InRolling", 2, 3, "StepPaused", 3, "waiting for approval"})
	if g := w.at().Guard; g.Phase != v1beta1.AnalysisFailed {
		t.Errorf("the guard only says so: %+v", g)
	}
}

func TestADeadlineThatRollsBack(t *testing.T) {
	plan := batches(step(1, ""), step("100%", ""))
	plan.Deadline, plan.OnDeadline = time.Minute, v1beta1.DeadlineRollback
	w := newWorld(plan)
	w.template("v2")
	for range 40 {
		w.seen.Now = w.seen.Now.Add(4 * time.Second)
		w.round(whole)
		w.seen.Batch.Step, w.seen.Batch.Message = 0, "Pod web-1: ImagePullBackOff"
	}
	wantShow(t, w, show{"Healthy", "Completed", 1, -1, "Completed", 0, ""})
	if r := w.status.Rejected; r == nil || !strings.Contains(r.Message, "longer than 1m0s: Pod web-1: ImagePullBackOff") {
		t.Errorf("rejected %+v", r)
	}
}

// judged plays a release with approvals, crashes of the manager and of Pods, results and time in the order of a seed, and returns which promise
// was broken: no step is left while its analysis has not succeeded and nobody has approved it since, none while the guard or a rejection
// holds it, and no measurement is made before its time.
func judged(seed uint64, next func(Plan, v1beta1.RolloutStatus, Seen) Decision) string {
	r := rand.New(rand.NewPCG(seed, 1))
	action := []v1beta1.FailureAction{v1beta1.FailurePause, v1beta1.FailureRollback}[r.IntN(2)]
	w := newWorld(withTraffic(batches(
		analysed(passing(step(1, "")), action), analysed(passing(step("30%", "20%")), action), passing(step("60%", "50%")), step("100%", ""))))
	w.next = next
	w.outcome = func(analysis.Request) v1beta1.AnalysisPhase {
		return []v1beta1.AnalysisPhase{v1beta1.AnalysisSuccessful, v1beta1.AnalysisSuccessful, v1beta1.AnalysisFailed, v1beta1.AnalysisInconclusive}[r.IntN(4)]
	}
	w.crashing = r.IntN(2) == 0
	w.template("v2")
	for range 120 {
		approved, c := false, crash(r.IntN(3))
		switch r.IntN(12) {
		case 0:
			if p := w.at(); p != nil && w.status.Phase == v1beta1.RolloutPhaseProgressing {
				approved, c = p.CurrentStepState == v1beta1.StepStatePaused, whole
				w.approve()
			}
		case 1: // the manager starts again, and knows no results
			w.seen.Measured, w.measured = nil, nil
		case 2: // somebody, or a tool, writes the new template again
			if w.seen.Workload.Update == "v1" {
				w.template("v2")
			}
		}
		before := *w.status.DeepCopy()
		w.seen.Now = w.seen.Now.Add(time.Duration(1+r.IntN(5)) * time.Second)
		w.round(c)
		if why := w.passed(before, approved); why != "" {
			return fmt.Sprintf("seed %d: %s", seed, why)
		}
	}
	return w.broken
}

// passed tells what was wrong about leaving a step since a status.
func (w *world) passed(before v1beta1.RolloutStatus, approved bool) string {
	m := machine{Plan: w.plan, out: Decision{Status: before}}
	was, now := m.at(), w.at()
	if was == nil || now == nil || now.CurrentStepIndex != was.CurrentStepIndex+1 {
		return ""
	}
	if h := m.held(); h.why != "" && !approved {
		return fmt.Sprintf("step %d was left while it was held: %s", was.CurrentStepIndex, h.why)
	}
	spec, a := w.plan.Steps[was.CurrentStepIndex-1].Analysis, was.Analysis
	if spec != nil && (a == nil || a.Phase == v1beta1.AnalysisRunning && a.Checks[0].Successful+1 < *spec.Checks[0].Count) {
		return fmt.Sprintf("step %d was left before its analysis was over: %+v", was.CurrentStepIndex, a)
	}
	return ""
}

func TestNobodyPassesAFailedAnalysis(t *testing.T) {
	for seed := range uint64(2000) {
		if why := judged(seed, Next); why != "" {
			t.Fatal(why)
		}
	}
}

// TestMistakesOfAnalysesAreFound puts mistakes in on purpose.
func TestMistakesOfAnalysesAreFound(t *testing.T) {
	at := func(s *v1beta1.RolloutStatus) *v1beta1.CommonStatus {
		return (&machine{out: Decision{Status: *s}}).at()
	}
	for name, mistake := range map[string]func(*Plan, *v1beta1.RolloutStatus, *Seen){
		"a failed analysis is forgotten": func(_ *Plan, s *v1beta1.RolloutStatus, _ *Seen) {
			if p := at(s); p != nil && p.Analysis != nil && p.Analysis.Phase == v1beta1.AnalysisFailed {
				p.Analysis.Phase = v1beta1.AnalysisSuccessful
			}
		},
		"what could not tell counts as a success": func(_ *Plan, s *v1beta1.RolloutStatus, _ *Seen) {
			if p := at(s); p != nil && p.Analysis != nil && p.Analysis.Phase == v1beta1.AnalysisInconclusive {
				p.Analysis.Phase = v1beta1.AnalysisSuccessful
			}
		},
		"an analysis is over when it begins": func(_ *Plan, s *v1beta1.RolloutStatus, _ *Seen) {
			if p := at(s); p != nil && p.Analysis != nil && p.Analysis.Phase == v1beta1.AnalysisRunning {
				p.Analysis.Phase = v1beta1.AnalysisSuccessful
			}
		},
		"a step has no analysis": func(p *Plan, _ *v1beta1.RolloutStatus, _ *Seen) {
			p.Steps = slices.Clone(p.Steps)
			p.Steps[1].Analysis = nil
		},
		"what the guard has found is forgotten": func(_ *Plan, s *v1beta1.RolloutStatus, seen *Seen) {
			if p := at(s); p != nil && p.Guard != nil && p.Guard.Phase == v1beta1.AnalysisFailed {
				p.Guard, seen.NewPods = nil, nil
			}
		},
		"a rejected revision is let through": func(_ *Plan, s *v1beta1.RolloutStatus, _ *Seen) {
			if s.Rejected != nil {
				s.Rejected.Revision = "another"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2000) {
				if judged(seed, func(p Plan, s v1beta1.RolloutStatus, seen Seen) Decision {
					stored := *s.DeepCopy()
					mistake(&p, &stored, &seen)
					d := Next(p, stored, seen)
					if r := d.Status.Rejected; r != nil && r.Revision == "another" { // it stays in the status all the same
						r.Revision = s.Rejected.Revision
					}
					return d
				}) != "" {
					return
				}
			}
			t.Error("nothing finds it")
		})
	}
}
