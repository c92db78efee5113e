package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/analysis"
	"github.com/seed-69ecc383/kruise/internal/rules/guard"
)

// What an approval overrides, as status.approvals names it.
const (
	despiteRejected = "Rejected"
	despiteGuard    = "Guard"
	despiteAnalysis = "Analysis"
)

// hold is what keeps a release from going on until a person decides. The zero value is none.
type hold struct {
	// reason is that of condition Progressing, why a sentence, despite what an approval overrides.
	reason, why, despite string
}

// held returns what holds the release.
func (m *machine) held() hold {
	st, p := &m.out.Status, m.at()
	switch {
	case st.Rejected != nil && st.Rejected.Revision == m.revision():
		return hold{v1beta1.ReasonRejected, "this revision was rolled back before: " + st.Rejected.Message, despiteRejected}
	case p.Guard != nil && p.Guard.Phase == v1beta1.AnalysisFailed && m.onGuard() == v1beta1.GuardPause:
		return hold{v1beta1.ReasonGuardFailed, p.Guard.Message, despiteGuard}
	case p.Analysis != nil && (p.Analysis.Phase == v1beta1.AnalysisFailed || p.Analysis.Phase == v1beta1.AnalysisInconclusive):
		return hold{v1beta1.ReasonAnalysisFailed, p.Analysis.Message, despiteAnalysis}
	}
	return hold{}
}

// goOn has nothing hold the release any more that holds it now: somebody has said so.
func (m *machine) goOn() {
	st, p := &m.out.Status, m.at()
	switch m.held().despite {
	case despiteRejected:
		st.Rejected = nil
	case despiteGuard:
		p.Guard.Phase = v1beta1.AnalysisOverridden
	case despiteAnalysis:
		p.Analysis.Phase = v1beta1.AnalysisOverridden
	}
}

// onGuard returns what follows when the guard finds the release to be bad.
func (m *machine) onGuard() v1beta1.GuardAction {
	if m.Guard == nil || m.Guard.OnFailure == "" {
		return v1beta1.GuardPause
	}
	return m.Guard.OnFailure
}

// baseline returns what the guard compares with in a release that begins anew from the revision that the one before came from: the old Pods
// as they were before that one. Otherwise it returns nil.
func (m *machine) baseline(stable string) *v1beta1.GuardStatus {
	p := m.at()
	if p == nil || p.Guard == nil || p.StableRevision != stable || m.reasonNow() == v1beta1.ReasonCompleted {
		return nil
	}
	g := p.Guard.DeepCopy()
	g.Phase, g.Failed, g.Message = v1beta1.AnalysisRunning, nil, ""
	return g
}

// watch stops the release where it is if its updated Pods do worse than the old ones, or if it must not begin. An approval that is given
// then has the step go on to its own pause. It returns when to look at the Pods again.
func (m *machine) watch() (again time.Duration) {
	p, before := m.at(), m.held()
	if before.despite != despiteRejected {
		if p.Guard == nil {
			p.Guard = guard.Begin(m.seen.OldPods, m.Guard, m.seen.Now)
		}
		was := p.Guard.Phase
		again = guard.Watch(p.Guard, m.seen.NewPods, m.Guard, m.seen.Now)
		if was == v1beta1.AnalysisRunning && p.Guard.Phase == v1beta1.AnalysisFailed && m.onGuard() == v1beta1.GuardRollback {
			m.bad = p.Guard.Message
			return 0
		}
	}
	h := m.held()
	if h.despite != despiteGuard && h.despite != despiteRejected {
		return again
	}
	if p.CurrentStepState == v1beta1.StepStateReady && before.despite == h.despite {
		m.note(h.despite)
		m.goOn()
		m.enter(v1beta1.StepStateBeforeUpgrade)
		return again
	}
	if p.CurrentStepState != v1beta1.StepStatePaused {
		m.enter(v1beta1.StepStatePaused)
	}
	m.stopBatch()
	return again
}

// lookIn asks for another round after a time; 0 does not.
func (m *machine) lookIn(after time.Duration) {
	if after > 0 && (m.out.After == 0 || after < m.out.After) {
		m.out.After = after
	}
}

// analyse measures how the new version does at the current step.
func (m *machine) analyse() bool {
	p, spec := m.at(), m.current().Analysis
	if spec == nil {
		p.Analysis = nil
		m.enter(v1beta1.StepStatePaused)
		return true
	}
	d := analysis.Next(spec, p.Analysis, analysis.Seen{Now: m.seen.Now, Of: m.analysed(), Results: m.seen.Measured})
	p.Analysis = &d.Status
	switch phase := d.Status.Phase; {
	case phase == v1beta1.AnalysisRunning:
		m.out.Measure = d.Measure
		m.lookIn(d.After)
		m.say(m.where() + ", analysing: " + d.Status.Message)
		return false
	case phase == v1beta1.AnalysisFailed && spec.OnFailure == v1beta1.FailureRollback:
		m.bad = d.Status.Message
		return false
	}
	m.enter(v1beta1.StepStatePaused)
	return true
}

// analysed names what an analysis is of.
func (m *machine) analysed() string {
	return fmt.Sprintf("%s/%d", m.revision(), m.at().CurrentStepIndex)
}

// isAnalysed tells whether the analysis of the current step is over, however it ended.
func (m *machine) isAnalysed() bool {
	a := m.at().Analysis
	return m.current().Analysis == nil || a != nil && a.Phase != v1beta1.AnalysisRunning
}

// analysisChanged tells whether an analysis holds the step that the step does not say any more.
func (m *machine) analysisChanged() bool {
	spec := m.current().Analysis
	return m.held().despite == despiteAnalysis && (spec == nil || analysis.Hash(spec, m.analysed()) != m.at().Analysis.Hash)
}

// rollBack begins to go back without a person: traffic first, then the old template is put back, then the workload goes on by itself.
func (m *machine) rollBack() {
	m.out.Status.Rejected = &v1beta1.Rejection{Revision: m.revision(), Time: metav1.NewTime(m.seen.Now), Message: m.bad}
	m.reason(v1beta1.ReasonCancelling, "going back: "+m.bad)
	m.at().FinalisingStep = ""
	m.cancel()
}

// isBack tells whether the workload has the template that the release came from.
func (m *machine) isBack() bool {
	w := m.seen.Workload
	return w.RolledBack || w.Update == m.at().StableRevision
}

// turnAgain ends a rollback, because the workload has got another template than it goes back to. The new version again is a release from
// its first step on.
func (m *machine) turnAgain() {
	m.at().FinalisingStep = ""
	if m.seen.Workload.Update == m.revision() {
		m.initialize(m.at().StableRevision)
		return
	}
	m.reason(v1beta1.ReasonInRolling, "the template has changed during the rollback")
	m.another()
}

// isElsewhere tells whether a workload that goes back has got another template than it goes back to meanwhile. While a rollback without a
// person has yet to put the old template back, the one that failed is no other, unless somebody has written it again: one write of ours
// raises the generation by one.
func (m *machine) isElsewhere() bool {
	st, p, w := &m.out.Status, m.at(), m.seen.Workload
	failed := st.Rejected != nil && st.Rejected.Revision == m.revision() && w.Update == m.revision()
	switch p.FinalisingStep {
	case "", v1beta1.FinalisingStepRouteTrafficToStable:
		return !m.isBack() && !failed
	case v1beta1.FinalisingStepRestoreTemplate:
		return !m.isBack() && (!failed || w.Generation > p.ObservedWorkloadGeneration+1)
	}
	return !m.isBack()
}
