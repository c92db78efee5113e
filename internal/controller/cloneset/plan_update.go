package cloneset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
)

// update moves Pods to the revision they are wanted at, in order, within maxUnavailable.
func update(v *Survey, b *plan.Builder) {
	moves := v.moves(isUpdated)
	target, number := v.history.Update, moves.Update
	if number < 0 {
		target, number = v.history.Current, -number
	}
	if number == 0 {
		return
	}
	if why := (rollout.Rest{OnDelete: v.onDelete(), Paused: v.strategy.Paused}).Why(); why != "" {
		b.Hold(plan.Hold{Why: fmt.Sprintf("%s: %d Pods are not at %s", why, number, target.Name)})
		return
	}
	candidates, err := v.candidates(target)
	if err != nil {
		b.Hold(plan.Hold{Why: err.Error(), Event: eventFailedUpdate, Failure: plan.Rollout})
		return
	}
	chosen := v.choose(candidates, target, number, moves.UpdateLimit)
	why := fmt.Sprintf("%s is wanted on %d Pods, %d have it", target.Name, v.limits.Expected(), v.fleet.counts(isUpdated).New.Total)
	step := updateStep{Survey: v, target: target, why: why, ways: v.waysTo(target)}
	for _, m := range candidates[:chosen] {
		step.update(m, b)
	}
	if wanted := min(number, len(candidates)); chosen < wanted {
		b.Hold(plan.Hold{
			Name: candidates[chosen].pod.Name,
			Why:  fmt.Sprintf("%d Pods wait: maxUnavailable %d is used up", wanted-chosen, v.limits.MaxUnavailable),
		})
	}
}

// candidates returns the Pods that could be brought to the target, the first to update first.
func (v *Survey) candidates(target *appsv1.ControllerRevision) ([]*member, error) {
	forward := target.Name == v.history.Update.Name
	byPod := map[*corev1.Pod]*member{}
	var pods []*corev1.Pod
	for _, m := range v.fleet.members {
		if m.updated != forward && m.isReplaceable() {
			byPod[m.pod] = m
			pods = append(pods, m.pod)
		}
	}
	sorted, err := order.Sort(pods, v.fleet.pods(), order.Strategy{
		Priority: v.strategy.PriorityStrategy,
		Scatter:  v.strategy.ScatterStrategy,
	})
	if err != nil {
		return nil, fmt.Errorf("ordering the update: %w", err)
	}
	members := make([]*member, 0, len(sorted))
	for _, p := range sorted {
		members = append(members, byPod[p])
	}
	return members, nil
}

// choose returns how many of the first candidates can be updated now.
func (v *Survey) choose(candidates []*member, target *appsv1.ControllerRevision, number, limit int) int {
	forward := target.Name == v.history.Update.Name
	c := budget.Candidates{}
	for _, m := range v.fleet.members {
		if !m.available {
			c.Unavailable++
			if m.updated == forward {
				c.UnavailableAtTarget++
			}
		}
	}
	for _, m := range candidates {
		c.Available = append(c.Available, m.available)
	}
	return max(budget.Take(c, number, limit), startedOf(candidates, number))
}

// startedOf returns how many of the first candidates have left service for the update already. Their place is paid for, also where
// maxUnavailable is 0 and they could leave thanks to a Pod that has gone since.
func startedOf(candidates []*member, number int) int {
	started := 0
	for _, m := range candidates[:min(number, len(candidates))] {
		if m.state != pub.LifecycleStatePreparingUpdate {
			break
		}
		started++
	}
	return started
}

// updateStep updates one Pod after another to the same target.
type updateStep struct {
	*Survey
	target  *appsv1.ControllerRevision
	why     string
	ways    *rollout.Ways
	refused bool
}

func (v *Survey) waysTo(target *appsv1.ControllerRevision) *rollout.Ways {
	options := v.Options.InPlace
	options.IgnoreClaims = v.inPlaceOnly() || !v.Options.RecreateOnClaimChange
	return rollout.WaysTo(target, v.history, options)
}

func (s *updateStep) update(m *member, b *plan.Builder) {
	if !s.inPlace() {
		s.recreate(m, "recreate", b)
		return
	}
	way := s.ways.From(m.pod)
	switch {
	case way.Refusal == "":
		s.workload().UpdateInPlace(rollout.Update{
			Pod: m.pod, Target: s.target, Change: way.Change, GraceSeconds: s.graceSeconds(), Why: s.why,
		}, b)
	case !s.inPlaceOnly():
		s.recreate(m, "recreate: "+way.Refusal, b)
	case !s.refused:
		s.refused = true
		b.Hold(rollout.Refused(m.pod, s.target, way.Refusal))
	}
}

func (s *updateStep) graceSeconds() int32 {
	if s.strategy.InPlaceUpdateStrategy == nil {
		return 0
	}
	return s.strategy.InPlaceUpdateStrategy.GracePeriodSeconds
}

// recreate deletes the Pod, whose place is then filled at the target revision. A Pod that its preDelete hook holds is marked for deletion and
// waits.
func (s *updateStep) recreate(m *member, what string, b *plan.Builder) {
	event := fmt.Sprintf("successfully delete pod %s for update(revision %s)", m.pod.Name, s.target.Name)
	if chain := s.workload().PrepareDelete(m.pod, plan.Rollout); chain != nil {
		for _, version := range chain {
			version.After.GetLabels()[keys.SpecifiedDelete] = "true"
		}
		chain[0].Why = s.why
		chain[0].Event, chain[0].EventMessage = eventSuccessfulUpdatePodReCreate, event
		chain[0].FailedEvent = eventFailedUpdatePodReCreate
		b.Do(chain...)
		return
	}
	b.Do(deletion(s.Survey, m, plan.Action{
		Concern: plan.Rollout, What: what, Why: s.why,
		Event: eventSuccessfulUpdatePodReCreate, EventMessage: event, FailedEvent: eventFailedUpdatePodReCreate,
	})...)
}
