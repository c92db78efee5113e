package release

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Hash returns what a plan is compared by during a release: all that its steps say but their pauses, which may change freely, and their
// analyses, which begin anew by themselves.
func Hash(steps []v1beta1.Step) string {
	plain := make([]v1beta1.Step, len(steps))
	for i := range steps {
		plain[i] = steps[i]
		plain[i].Pause, plain[i].Analysis = v1beta1.StepPause{}, nil
	}
	return digest(plain)
}

// digest returns a short text that differs for values that differ.
func digest(values ...any) string {
	h := fnv.New64a()
	for _, v := range values {
		text, _ := json.Marshal(v) // of the API, which can be written
		_, _ = h.Write(text)       // a hash takes everything
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// Next returns what a Rollout does next.
func Next(plan Plan, was v1beta1.RolloutStatus, seen Seen) Decision {
	m := &machine{Plan: plan, seen: seen}
	was.DeepCopyInto(&m.out.Status)
	m.phase()
	m.finish()
	return m.out
}

// machine is one round.
type machine struct {
	Plan
	seen Seen
	out  Decision
	// late says why the current step has taken too long; empty while it has not.
	late string
	// bad says why the new version is to be rolled back without a person; empty mostly.
	bad string
}

func (m *machine) phase() {
	st := &m.out.Status
	inRelease := slices.Contains([]v1beta1.RolloutPhase{
		v1beta1.RolloutPhaseProgressing, v1beta1.RolloutPhaseDisabling, v1beta1.RolloutPhaseTerminating,
	}, st.Phase)
	switch {
	case m.Deleted:
		m.terminate()
	case st.Phase == v1beta1.RolloutPhaseDisabling:
		m.disable() // to its end, also if it is to be enabled again
	case m.Disabled && (inRelease || m.seen.Workload != nil && (m.seen.Workload.Marked || m.seen.Workload.Left)):
		m.begin(v1beta1.RolloutPhaseDisabling, "the release ends because the Rollout is disabled")
		m.disable()
	case m.Disabled:
		m.begin(v1beta1.RolloutPhaseDisabled, "disabled: the workload is left alone")
	case m.seen.Workload == nil:
		m.withoutWorkload(inRelease)
	case st.Phase == v1beta1.RolloutPhaseProgressing:
		m.progressing()
	case !m.seen.Workload.Settled:
		m.out.After = recheck
	default:
		m.healthy()
	}
}

// begin enters a phase.
func (m *machine) begin(phase v1beta1.RolloutPhase, message string) {
	st := &m.out.Status
	if st.Phase != phase {
		if p := m.at(); p != nil {
			p.FinalisingStep = ""
		}
	}
	st.Phase, st.Message = phase, message
}

// noRelease is the message of a Rollout that waits for a release.
const noRelease = "no release: the workload is as its template says"

func (m *machine) healthy() {
	st, w := &m.out.Status, m.seen.Workload
	if w.Marked {
		m.begin(v1beta1.RolloutPhaseProgressing, "a release begins")
		m.drop(v1beta1.ConditionSucceeded)
		m.initialize(w.Stable)
		return
	}
	m.begin(v1beta1.RolloutPhaseHealthy, noRelease)
	if m.at() == nil {
		m.start()
		p := m.at()
		p.CurrentStepIndex, p.NextStepIndex = int32(len(m.Steps)), -1
		p.CurrentStepState, p.StableRevision = v1beta1.StepStateCompleted, w.Update
	}
	if p := m.at(); p.ObservedRolloutID != rollbackID+w.ReleaseID { // of a release that was a rollback, which Pods are labelled with
		p.ObservedRolloutID = w.ReleaseID
	}
	if st.CanaryStatus != nil {
		st.CanaryStatus.CanaryRevision = w.Update
	} else {
		st.BlueGreenStatus.UpdatedRevision = w.Update
	}
	if w.Left {
		m.say("no release: the workload goes on by itself, because the Rollout of the release that froze it is gone")
		m.act(Action{Do: Unmark})
	}
}

// rollbackID begins the name of a rollback in batches that users give no name: the Pods of the revision that it goes back to may still have
// the labels of the release that brought them there.
//
// Wire: it is in labels of users' Pods.
const rollbackID = "rollback-"

// initialize begins a release that came from a revision: from nothing, with what a new plan may still say.
func (m *machine) initialize(stable string) {
	m.out.Status.Approvals = nil
	baseline := m.baseline(stable)
	m.start()
	p := m.at()
	p.StableRevision, p.Guard = stable, baseline
	if w := m.seen.Workload; w.Update == stable && w.ReleaseID == w.Update {
		p.ObservedRolloutID = rollbackID + w.Update
	}
	m.reason(v1beta1.ReasonInitializing, "the release begins")
	m.touch()
	m.out.After = settleTime
}

// start makes an empty status of the release.
func (m *machine) start() {
	st, w := &m.out.Status, m.seen.Workload
	common := v1beta1.CommonStatus{
		ObservedWorkloadGeneration: w.Generation, ObservedRolloutID: w.ReleaseID, RolloutHash: m.Hash, StableRevision: w.Stable,
		CurrentStepIndex: 1, NextStepIndex: m.natural(1), CurrentStepState: v1beta1.StepStateBeforeUpgrade,
	}
	st.CanaryStatus, st.BlueGreenStatus = nil, nil
	if m.Style == v1beta1.RollingStyleBlueGreen {
		st.BlueGreenStatus = &v1beta1.BlueGreenStatus{CommonStatus: common, UpdatedRevision: w.Update}
	} else {
		st.CanaryStatus = &v1beta1.CanaryStatus{CommonStatus: common, CanaryRevision: w.Update}
	}
}

func (m *machine) progressing() {
	p, w := m.at(), m.seen.Workload
	if p == nil { // somebody has removed it: begin anew
		m.initialize(w.Stable)
		return
	}
	m.tooEarly()
	if m.strands() {
		return
	}
	if !w.Settled {
		m.out.After = recheck
		return
	}
	switch reason := m.reasonNow(); {
	case reason == v1beta1.ReasonCancelling && m.isElsewhere():
		m.turnAgain()
	case reason == v1beta1.ReasonCancelling:
		m.cancel()
	case reason == v1beta1.ReasonFinalising:
		m.succeed()
	case reason == v1beta1.ReasonCompleted:
		m.complete()
	case m.isBack() && !m.RollbackInBatches:
		m.reason(v1beta1.ReasonCancelling, "the old template is back")
		p.FinalisingStep = ""
		m.cancel()
	case m.Paused && reason != v1beta1.ReasonInitializing:
		m.hold()
	case m.revision() != w.Update || m.seen.Batch.Another:
		m.another()
	case reason == v1beta1.ReasonInitializing:
		m.initializing()
	default:
		m.rolling()
	}
}

// initializing waits until workload and Rollout can't be half applied any more, and for the objects that lead traffic.
func (m *machine) initializing() {
	p := m.at()
	p.RolloutHash, p.NextStepIndex = m.Hash, m.natural(1)
	if rest := m.left(settleTime); rest > 0 {
		m.say("the release begins")
		m.out.After = rest
		return
	}
	if (m.Routed || m.Shared) && m.seen.Traffic.Missing != "" {
		m.say(m.seen.Traffic.Missing + " is not there: create it, or take it out of trafficRoutings when no release is under way")
		m.out.After = recheck
		return
	}
	if join := (Action{Do: Join}); m.Shared && !m.reached(join) {
		m.say("waiting for the TrafficRouting to lead traffic for this release, too" + m.trouble(join))
		m.out.Do = append(m.out.Do, join)
		m.out.After = recheck
		return
	}
	if m.Paused {
		m.hold()
		return
	}
	m.rolling()
}

// hold keeps the release where it is.
func (m *machine) hold() {
	m.reason(v1beta1.ReasonPaused, "spec.strategy.paused holds the release")
	m.say("paused at " + m.where())
	m.stopBatch()
}

// stopBatch has no further Pod be updated.
func (m *machine) stopBatch() {
	if b := m.seen.Batch; b.Exists && !b.Paused {
		m.out.Do = append(m.out.Do, Action{Do: Hold})
	}
}

// another begins again because the template has changed once more. The revision that the release came from stays, and so does the Service
// that selects it: the Pods in between get no traffic.
func (m *machine) another() {
	if m.Style == v1beta1.RollingStyleBlueGreen && m.seen.Batch.Exists {
		const why = "the template has changed again: roll back, put the old one back first, because a third version can't be brought up " +
			"beside two"
		if p := m.at(); p.CurrentStepState == v1beta1.StepStateReady { // what is approved is the version before
			m.enter(v1beta1.StepStatePaused)
		}
		m.reason(v1beta1.ReasonThirdVersion, why)
		m.say(why)
		return
	}
	goals, missed := []Action{{Do: RestoreRoutes}, {Do: Release}, {Do: RemoveService}}, m.revision() == m.seen.Workload.Update
	if missed { // only the BatchRelease tells of the template in between, so it goes when the new beginning is stored
		goals = []Action{{Do: RestoreRoutes}, {Do: RemoveService}}
	}
	if !m.bring("the template has changed again: the release begins anew", goals...) {
		return
	}
	if missed {
		m.act(Action{Do: Release})
	}
	m.initialize(m.at().StableRevision)
}

// at returns what all styles say of the release; nil if nothing is said.
func (m *machine) at() *v1beta1.CommonStatus {
	switch st := &m.out.Status; {
	case st.CanaryStatus != nil:
		return &st.CanaryStatus.CommonStatus
	case st.BlueGreenStatus != nil:
		return &st.BlueGreenStatus.CommonStatus
	}
	return nil
}

// revision returns the new revision that the release leads to.
func (m *machine) revision() string {
	if c := m.out.Status.CanaryStatus; c != nil {
		return c.CanaryRevision
	}
	return m.out.Status.BlueGreenStatus.UpdatedRevision
}

// natural returns the step after one; -1 if it is the last.
func (m *machine) natural(step int32) int32 {
	if int(step) >= len(m.Steps) {
		return -1
	}
	return step + 1
}

func (m *machine) where() string {
	return fmt.Sprintf("step(%d/%d)", m.at().CurrentStepIndex, len(m.Steps))
}

func (m *machine) say(message string) {
	m.out.Status.Message = message
	if p := m.at(); p != nil {
		p.Message = message
	}
}

// touch begins the time that grace periods and pauses count. It is stored in whole seconds: rounded up, so that nothing is cut short.
func (m *machine) touch() {
	now := metav1.NewTime(m.seen.Now.Add(time.Second - 1).Truncate(time.Second))
	m.at().LastUpdateTime = &now
}

// left returns how much is left of a time that began with the last change.
func (m *machine) left(of time.Duration) time.Duration {
	if m.at().LastUpdateTime == nil || of <= 0 {
		return 0
	}
	return max(of-m.seen.Now.Sub(m.at().LastUpdateTime.Time), 0)
}

// grace returns how long a change of traffic takes.
func (m *machine) grace() time.Duration {
	if !m.Routed && !m.Shared {
		return 0
	}
	return m.Grace
}

func (m *machine) reasonNow() string {
	for _, c := range m.out.Status.Conditions {
		if c.Type == v1beta1.ConditionProgressing {
			return c.Reason
		}
	}
	return v1beta1.ReasonInitializing
}

// reason says where the release is.
func (m *machine) reason(reason, message string) {
	status := corev1.ConditionTrue
	switch reason {
	case v1beta1.ReasonCompleted, v1beta1.ReasonStepTimeout,
		v1beta1.ReasonAnalysisFailed, v1beta1.ReasonGuardFailed, v1beta1.ReasonRejected, v1beta1.ReasonThirdVersion:
		status = corev1.ConditionFalse
	}
	m.condition(v1beta1.ConditionProgressing, status, reason, message)
}

func (m *machine) condition(of string, status corev1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(m.seen.Now)
	next := v1beta1.RolloutCondition{
		Type: of, Status: status, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	}
	st := &m.out.Status
	for i, c := range st.Conditions {
		if c.Type != of {
			continue
		}
		if c.Status == status {
			next.LastTransitionTime = c.LastTransitionTime
		}
		if c.Status != status || c.Reason != reason || c.Message != message {
			st.Conditions[i] = next
		}
		return
	}
	st.Conditions = append(st.Conditions, next)
}

func (m *machine) drop(of string) {
	var kept []v1beta1.RolloutCondition
	for _, c := range m.out.Status.Conditions {
		if c.Type != of {
			kept = append(kept, c)
		}
	}
	m.out.Status.Conditions = kept
}

// finish fills in what is copied and counted.
func (m *machine) finish() {
	st, p, w := &m.out.Status, m.at(), m.seen.Workload
	st.CurrentStepIndex, st.CurrentStepState = 0, ""
	if p == nil {
		return
	}
	st.CurrentStepIndex, st.CurrentStepState = p.CurrentStepIndex, p.CurrentStepState
	if w == nil {
		return
	}
	p.ObservedWorkloadGeneration, p.PodTemplateHash = w.Generation, w.PodHash
	if c := st.CanaryStatus; c != nil {
		c.CanaryReplicas, c.CanaryReadyReplicas = w.Updated, w.Ready
	} else {
		st.BlueGreenStatus.UpdatedReplicas, st.BlueGreenStatus.UpdatedReadyReplicas = w.Updated, w.Ready
	}
}
