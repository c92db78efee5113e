package release

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// ending is one step of the way out of a release: what is stored, and what it brings about.
type ending struct {
	name v1beta1.FinalisingStep
	goal Action
}

// endings returns the way out. On success the old version keeps its Service until the new one has all Pods; on a rollback traffic goes back
// before any new Pod goes. The mark comes off the workload last: until then whatever else was changed can still be found.
func (m *machine) endings(success, wait bool) []ending {
	unpin := ending{v1beta1.FinalisingStepRestoreStableService, Action{Do: Unpin}}
	stable := ending{v1beta1.FinalisingStepRouteTrafficToStable, Action{Do: RestoreRoutes}}
	remove := ending{v1beta1.FinalisingStepRemoveCanaryService, Action{Do: RemoveService}}
	putBack := ending{v1beta1.FinalisingStepRestoreTemplate, Action{Do: PutBack}}
	resume := ending{v1beta1.FinalisingStepResumeWorkload, Action{Do: Resume, Wait: wait}}
	release := ending{v1beta1.FinalisingStepReleaseWorkloadControl, Action{Do: Release}}
	unmark := ending{v1beta1.FinalisingStepReleaseWorkloadControl, Action{Do: Unmark}}
	blueGreen := m.Style == v1beta1.RollingStyleBlueGreen
	leave := ending{v1beta1.FinalisingStepRouteTrafficToStable, Action{Do: Leave}} // a Rollout has routes of its own, or shares some
	switch {
	case success && blueGreen:
		toNew := ending{v1beta1.FinalisingStepRouteTrafficToNew, Action{Do: SetRoutes}}
		return []ending{toNew, unpin, resume, stable, leave, remove, release, unmark}
	case success:
		return []ending{unpin, stable, leave, remove, resume, release, unmark}
	case blueGreen:
		return []ending{stable, leave, putBack, resume, unpin, remove, release, unmark}
	}
	return []ending{stable, leave, putBack, resume, release, unpin, remove, unmark}
}

// end goes the way out, from where it is stored to be; true at its end.
func (m *machine) end(way []ending) bool {
	p := m.at()
	if p == nil && m.seen.Workload == nil {
		return true
	}
	if p == nil { // nothing is known of the release, but what it may have changed
		m.start()
		p = m.at()
	}
	if p.FinalisingStep == v1beta1.FinalisingStepEnd {
		return true
	}
	begun := !slices.ContainsFunc(way, func(e ending) bool { return e.name == p.FinalisingStep })
	for _, e := range way {
		if begun = begun || p.FinalisingStep == e.name; !begun || m.gone(e.goal) {
			continue
		}
		isNew := p.FinalisingStep != e.name
		p.FinalisingStep = e.name
		if !m.reached(e.goal) {
			m.say("ending the release: " + string(e.name) + m.trouble(e.goal))
			m.act(e.goal)
			if isNew { // people read since when it is at this
				m.touch()
			}
			return false
		}
		if rest := m.left(m.grace()); rest > 0 && m.isTraffic(e.goal) {
			m.say("ending the release: " + string(e.name))
			m.out.After = rest
			return false
		}
	}
	for _, e := range way {
		if m.isTraffic(e.goal) && e.goal.Do != SetRoutes && !m.gone(e.goal) && !m.reached(e.goal) { // an older look has shown it as reached
			m.say("ending the release: " + string(e.name) + m.trouble(e.goal))
			m.act(e.goal)
			return false
		}
	}
	p.FinalisingStep = v1beta1.FinalisingStepEnd
	return true
}

// cutShort returns the way out of a release before its steps are done.
func (m *machine) cutShort() []ending {
	way := m.endings(true, false)
	if p := m.at(); !m.KeepsFrozen || p == nil || m.seen.Workload == nil || m.isBack() ||
		slices.Contains([]string{v1beta1.ReasonFinalising, v1beta1.ReasonCancelling, v1beta1.ReasonCompleted}, m.reasonNow()) {
		return way
	}
	way = slices.DeleteFunc(way, func(e ending) bool { return e.goal.Do == Resume || e.goal.Do == Unmark || e.goal.Do == SetRoutes })
	return append(way, ending{v1beta1.FinalisingStepReleaseWorkloadControl, Action{Do: Abandon}})
}

func (m *machine) isTraffic(a Action) bool {
	return slices.Contains([]Verb{Pin, Unpin, CreateService, RemoveService, SetRoutes, RestoreRoutes, Join, Leave}, a.Do)
}

// trouble returns what keeps an action about traffic from its goal, to be added to a message.
func (m *machine) trouble(a Action) string {
	problem := m.seen.Traffic.Problem
	if problem == "" || !m.isTraffic(a) {
		return ""
	}
	return ": " + problem
}

// gone tells whether what an action is about can't be there: traffic of a Rollout that leads none, or a workload that was deleted.
func (m *machine) gone(a Action) bool {
	switch a.Do {
	case SetRoutes: // all requests go to the new Pods only where there are as many as they need, and a Service that selects them
		w := m.seen.Workload
		return !m.Routed || w == nil || w.Ready < w.Replicas || !m.seen.Traffic.NewService && !m.OneService
	case Unpin, RestoreRoutes, RemoveService:
		return !m.Routed
	case Leave: // also if the Rollout names another one by now: that it has joined shows
		return !m.Shared && !m.seen.Traffic.Joined
	case PutBack, Resume, Unmark, Abandon:
		return m.seen.Workload == nil
	}
	return false
}

// reached tells whether a wanted state is seen.
func (m *machine) reached(a Action) bool {
	t := m.seen.Traffic
	switch a.Do {
	case Pin:
		return t.Pinned
	case Unpin:
		return !t.Pinned && !t.PinLeft
	case CreateService:
		return t.NewService
	case RemoveService:
		return !t.NewService && !t.ServiceLeft
	case SetRoutes:
		if a.Step == 0 {
			return t.Routes == AllTraffic
		}
		return t.Routes == Route(m.Steps[a.Step-1])
	case RestoreRoutes:
		return t.Routes == ""
	case Join:
		return t.Joined
	case Leave:
		return !t.Joined && !t.Leaving
	case PutBack:
		return m.isBack() || m.seen.Workload.Update != m.revision()
	case Resume:
		return !m.seen.Workload.Frozen && (!a.Wait || !m.seen.Batch.Exists || m.seen.Batch.Resumed)
	case Release:
		return !m.seen.Batch.Exists
	case Unmark:
		return !m.seen.Workload.Marked && !m.seen.Workload.Frozen && !m.seen.Workload.Unscaled
	case Abandon: // it is not frozen by a release any more, but by its user
		return !m.seen.Workload.Marked && !m.seen.Workload.Frozen
	}
	return false
}

func (m *machine) succeed() {
	if !m.end(m.endings(true, true)) {
		return
	}
	m.reason(v1beta1.ReasonCompleted, "the release is completed")
	m.condition(v1beta1.ConditionSucceeded, corev1.ConditionTrue, v1beta1.ReasonCompleted, "all steps are done")
	m.over("the release is completed")
}

func (m *machine) cancel() {
	if !m.end(m.endings(false, false)) {
		return
	}
	p := m.at()
	p.CurrentStepState, p.NextStepIndex = v1beta1.StepStateCompleted, -1
	m.reason(v1beta1.ReasonCompleted, "the release is rolled back")
	why := "the old template was put back"
	if r := m.out.Status.Rejected; r != nil && r.Revision == m.revision() {
		why += ", because " + r.Message
	}
	m.condition(v1beta1.ConditionSucceeded, corev1.ConditionFalse, v1beta1.ReasonCompleted, why)
	m.over("the release is rolled back")
}

// over ends a release, unless it has to be recorded before.
func (m *machine) over(message string) {
	m.say(message)
	if m.Records {
		m.out.After = recheck
		return
	}
	m.begin(v1beta1.RolloutPhaseHealthy, noRelease)
}

// complete has the release recorded that is over.
func (m *machine) complete() {
	if m.Records && !m.seen.Recorded {
		for _, c := range m.out.Status.Conditions {
			if c.Type == v1beta1.ConditionSucceeded && m.seen.Now.Sub(c.LastTransitionTime.Time) < recordTime {
				m.out.Do = append(m.out.Do, Action{Do: Record})
				m.out.After = recheck
				return
			}
		}
	}
	m.begin(v1beta1.RolloutPhaseHealthy, noRelease)
}

// disable ends the release in the order of success, without waiting for Pods.
func (m *machine) disable() {
	if !m.end(m.cutShort()) {
		return
	}
	m.forget()
	m.reason(v1beta1.ReasonCompleted, "the release was ended because the Rollout was disabled")
	m.begin(v1beta1.RolloutPhaseDisabled, "disabled: the workload is left alone")
	if !m.Disabled {
		m.begin(v1beta1.RolloutPhaseHealthy, "enabled again")
	}
}

func (m *machine) terminate() {
	m.begin(v1beta1.RolloutPhaseTerminating, "the Rollout is being deleted")
	if !m.end(m.cutShort()) {
		m.condition(v1beta1.ConditionTerminating, corev1.ConditionTrue, v1beta1.ReasonInTerminating,
			"what the release has changed is restored")
		return
	}
	m.condition(v1beta1.ConditionTerminating, corev1.ConditionFalse, v1beta1.ReasonCompleted, "nothing of the release is left")
	m.out.Done = true
}

// withoutWorkload removes what a release of a deleted workload has left, and waits for another one.
func (m *machine) withoutWorkload(inRelease bool) {
	if inRelease && !m.end(m.endings(false, false)) {
		return
	}
	m.forget()
	m.drop(v1beta1.ConditionProgressing)
	m.begin(v1beta1.RolloutPhaseInitial, "workload not found")
}

// forget drops what is known of the release.
func (m *machine) forget() {
	m.out.Status.CanaryStatus, m.out.Status.BlueGreenStatus, m.out.Status.Approvals = nil, nil, nil
}
