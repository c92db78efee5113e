package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// rolling follows the steps. States that neither act nor wait are passed in one round.
func (m *machine) rolling() {
	m.changedPlan()
	m.jump()
	again := m.watch()
	for m.bad == "" && m.step() {
	}
	m.lookIn(again)
	switch h := m.held(); {
	case m.bad != "":
		m.rollBack()
	case m.at().CurrentStepState == v1beta1.StepStateCompleted:
		m.reason(v1beta1.ReasonFinalising, "all steps are done")
		m.at().FinalisingStep = ""
		m.succeed()
	case h.why != "":
		m.reason(h.reason, h.why)
	case m.late != "":
		m.reason(v1beta1.ReasonStepTimeout, m.late)
	default:
		m.reason(v1beta1.ReasonInRolling, "the release follows its steps")
	}
}

// changedPlan obeys steps that say something else than before. The release stays at its step, and the step runs again as far as it has to:
// no change of a plan stands for an approval.
func (m *machine) changedPlan() {
	p := m.at()
	p.CurrentStepIndex = min(max(p.CurrentStepIndex, 1), int32(len(m.Steps))) // somebody may have written what is no step
	if p.RolloutHash == m.Hash {
		return
	}
	p.RolloutHash = m.Hash
	p.NextStepIndex = m.natural(p.CurrentStepIndex)
	p.Analysis = nil
	m.enter(v1beta1.StepStateBeforeUpgrade)
}

// jump makes the step that a user has written the current one. Any other number than that of a step is corrected.
func (m *machine) jump() {
	p := m.at()
	next := m.natural(p.CurrentStepIndex)
	if p.NextStepIndex == next {
		return
	}
	to := p.NextStepIndex
	p.NextStepIndex = next
	if to < 1 || int(to) > len(m.Steps) {
		return
	}
	p.CurrentStepIndex, p.NextStepIndex = to, m.natural(to)
	m.goOn()
	p.Analysis = nil
	m.enter(v1beta1.StepStateBeforeUpgrade)
}

// enter begins a state. Deadlines and pauses count from where theirs begin; the time of any other is that of the last change of traffic.
func (m *machine) enter(state v1beta1.StepState) {
	m.at().CurrentStepState = state
	if state == v1beta1.StepStateUpgrade || state == v1beta1.StepStatePaused {
		m.touch()
	}
}

// current returns the step that the release is at.
func (m *machine) current() v1beta1.Step { return m.Steps[m.at().CurrentStepIndex-1] }

// routed tells whether the current step leads traffic.
func (m *machine) routed() bool { return m.Routed && Route(m.current()) != "" }

// updatesAll tells whether the step leaves no old Pod in a workload whose own Pods are updated: then there is nothing to lead traffic to
// but the new version.
func (m *machine) updatesAll() bool {
	return updatesAll(m.Style, m.current().Replicas, m.seen.Workload.Replicas)
}

func updatesAll(style Style, step *intstr.IntOrString, replicas int32) bool {
	n, err := Planned(step, replicas)
	return err == nil && style == v1beta1.RollingStylePartition && n >= replicas
}

// endsAtOnce tells whether a release that has come to the pause of a step does not wait: it is the last one, and literally all.
func endsAtOnce(style Style, steps []v1beta1.Step, i int) bool {
	return i == len(steps)-1 && isAll(steps[i].Replicas) && style != v1beta1.RollingStyleBlueGreen
}

// step goes on by one state; false when the round is over.
func (m *machine) step() bool {
	p := m.at()
	switch p.CurrentStepState {
	case v1beta1.StepStateUpgrade:
		return m.upgrade()
	case v1beta1.StepStateTrafficRouting:
		return m.route()
	case v1beta1.StepStateMetricsAnalysis:
		return m.analyse()
	case v1beta1.StepStatePaused:
		return m.pause()
	case v1beta1.StepStateReady:
		return m.approved()
	case v1beta1.StepStateCompleted:
		return false
	}
	return m.prepare()
}

// prepare brings traffic to where no new Pod gets any that it should not have.
func (m *machine) prepare() bool {
	var goals []Action
	switch {
	case m.Routed && !m.routed():
		goals = []Action{{Do: Unpin}, {Do: RestoreRoutes}, {Do: RemoveService}}
	case m.routed() && (m.updatesAll() || m.seen.Workload.NoneOld):
		goals = []Action{{Do: Unpin}}
	case m.routed() && m.at().CurrentStepIndex == 1 && !m.OneService:
		goals = []Action{{Do: Pin}}
	}
	if !m.bring(m.where()+", preparing traffic", goals...) {
		return false
	}
	m.enter(v1beta1.StepStateUpgrade)
	return true
}

// bring takes the first action whose goal is not reached, and waits until the data plane has followed; true once all are reached. Before
// the next action it waits, too: routes lead only to a Service that the data plane knows, and a Service goes after what leads to it.
func (m *machine) bring(what string, goals ...Action) bool {
	for i, goal := range goals {
		if m.reached(goal) {
			continue
		}
		if i > 0 && m.waits(what) {
			return false
		}
		m.say(what + m.trouble(goal))
		m.act(goal)
		return false
	}
	return len(goals) == 0 || !m.waits(what)
}

// waits reports whether the data plane may not have followed the last change yet.
func (m *machine) waits(what string) bool {
	rest := m.left(m.grace())
	if rest > 0 {
		m.say(what)
		m.out.After = rest
	}
	return rest > 0
}

// strands reports whether a Service selects old Pods alone, and there are none any more: the workload was scaled down, or has got a third
// version. It is to select all of them then, whatever the release is at.
func (m *machine) strands() bool {
	unpin := Action{Do: Unpin}
	if !m.Routed || !m.seen.Workload.NoneOld || m.reached(unpin) {
		return false
	}
	m.say("no Pod of the old version is left: leading requests to all Pods" + m.trouble(unpin))
	m.act(unpin)
	return true
}

// act asks for one state, and begins the grace period that follows a change of traffic. Nothing counts from any other, and the time would
// be stored once a second as long as it takes.
func (m *machine) act(a Action) {
	m.out.Do = append(m.out.Do, a)
	if m.out.After = recheck; m.trouble(a) != "" {
		m.out.After = recheckTrouble
	}
	if m.isTraffic(a) {
		m.touch()
	}
}

func (m *machine) upgrade() bool {
	p, b := m.at(), m.seen.Batch
	if b.Allowed != p.CurrentStepIndex || !b.Exists || b.Paused {
		m.out.Do = append(m.out.Do, Action{Do: Upgrade, Step: p.CurrentStepIndex})
	}
	if b.Exists && b.Allowed == p.CurrentStepIndex && b.Step >= p.CurrentStepIndex {
		m.enter(v1beta1.StepStateTrafficRouting)
		return true
	}
	waits := b.Message
	if waits == "" {
		waits = "waiting for its Pods"
	}
	m.say(m.where() + ", upgrading: " + waits)
	if m.Deadline > 0 {
		if rest := m.left(m.Deadline); rest > 0 {
			m.out.After = rest
		} else {
			m.late = fmt.Sprintf("%s has taken longer than %s: %s", m.where(), m.Deadline, waits)
			if m.OnDeadline == v1beta1.DeadlineRollback {
				m.bad = m.late
			}
		}
	}
	return false
}

func (m *machine) route() bool {
	if m.routed() && !m.updatesAll() {
		if m.seen.Workload.PodHash == "" || m.at().StableRevision == "" {
			m.say(m.where() + ", routing: waiting for the revision label of its Pods")
			m.out.After = recheck
			return false
		}
		var goals []Action
		if !m.OneService {
			goals = append(goals, Action{Do: CreateService})
		}
		if !m.OneService && !m.seen.Workload.NoneOld {
			goals = append(goals, Action{Do: Pin})
		}
		goals = append(goals, Action{Do: SetRoutes, Step: m.at().CurrentStepIndex})
		if !m.bring(m.where()+", routing", goals...) {
			return false
		}
	}
	m.enter(v1beta1.StepStateMetricsAnalysis)
	return true
}

func (m *machine) pause() bool {
	p, step := m.at(), m.current()
	if m.analysisChanged() {
		m.enter(v1beta1.StepStateMetricsAnalysis)
		return true
	}
	if h := m.held(); h.why != "" {
		m.say(m.where() + ", held: " + h.why +
			"; approve the step to go on nevertheless, jump to another one, or put the old template back")
		return false
	}
	if endsAtOnce(m.Style, m.Steps, int(p.CurrentStepIndex)-1) {
		m.advance()
		return true
	}
	if step.Pause.Duration == nil {
		m.say(m.where() + ", waiting for approval: confirm to go on")
		return false
	}
	rest := m.left(time.Duration(*step.Pause.Duration) * time.Second)
	if rest > 0 {
		m.say(fmt.Sprintf("%s, waiting %d seconds", m.where(), *step.Pause.Duration))
		m.out.After = rest
		return false
	}
	m.advance()
	return true
}

// approved goes on to the next step, if what was approved is there: an approval that comes while a step is still under way does not stand
// for it.
func (m *machine) approved() bool {
	p, b, h := m.at(), m.seen.Batch, m.held()
	done := m.isAnalysed() && b.Exists && b.Allowed == p.CurrentStepIndex && b.Step >= p.CurrentStepIndex
	if m.routed() && !m.updatesAll() {
		done = done && m.reached(Action{Do: SetRoutes, Step: p.CurrentStepIndex})
	}
	if !done {
		m.enter(v1beta1.StepStateBeforeUpgrade)
		return true
	}
	if m.current().Pause.Duration == nil || h.despite != "" {
		m.note(h.despite)
	}
	m.goOn()
	m.advance()
	return true
}

// note notes that the current step was approved, despite what would have held it.
func (m *machine) note(despite string) {
	st := &m.out.Status
	st.Approvals = append(st.Approvals, v1beta1.StepApproval{
		Step: m.at().CurrentStepIndex, Time: metav1.NewTime(m.seen.Now), Despite: despite,
	})
	st.Approvals = st.Approvals[max(len(st.Approvals)-maxApprovals, 0):]
}

// tooEarly takes back an approval that was written before the step had come to its pause. The copies in the status, which an approval does
// not change, say so; a tool that changes them, too, is believed.
func (m *machine) tooEarly() {
	p, st := m.at(), &m.out.Status
	came := st.CurrentStepState == v1beta1.StepStatePaused || st.CurrentStepState == v1beta1.StepStateReady
	if p.CurrentStepState == v1beta1.StepStateReady && (!came || st.CurrentStepIndex != p.CurrentStepIndex) {
		m.enter(v1beta1.StepStateBeforeUpgrade)
	}
}

// maxApprovals is how many approvals are kept: steps can be gone back to.
const maxApprovals = 50

// advance leaves the current step.
func (m *machine) advance() {
	p := m.at()
	next := m.natural(p.CurrentStepIndex)
	if next < 0 {
		m.enter(v1beta1.StepStateCompleted)
		return
	}
	p.CurrentStepIndex, p.NextStepIndex, p.Analysis = next, m.natural(next), nil
	m.enter(v1beta1.StepStateBeforeUpgrade)
}
