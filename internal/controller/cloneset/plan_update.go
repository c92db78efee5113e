package cloneset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
)

// update moves Pods to the revision they are wanted at, in order, within maxUnavailable.
func (v *State) update(b *plan.Builder) {
	moves := v.moves(isUpdated)
	target, number := v.workload.History.Update, moves.Update
	if number < 0 {
		target, number = v.workload.History.Current, -number
	}
	if number == 0 {
		return
	}
	if why := v.workload.WhyNotUpdating(); why != "" {
		b.Hold(plan.Hold{Why: fmt.Sprintf("%s: %d Pods are not at %s", why, number, target.Name)})
		return
	}
	candidates, err := v.candidates(target)
	if err != nil {
		b.Hold(plan.Hold{Why: err.Error(), Event: eventFailedUpdate, Failure: plan.Rollout})
		return
	}
	chosen := v.choose(candidates, target, number, moves.UpdateLimit)
	why := fmt.Sprintf("%s is wanted on %d Pods, %d have it", target.Name, v.limits.Expected(), v.counts(isUpdated).New.Total)
	step := v.stepTo(target)
	step.why = why
	for _, m := range candidates[:chosen] {
		step.take(m, b)
	}
	if wanted := min(number, len(candidates)); chosen < wanted {
		b.Hold(plan.Hold{
			Name: candidates[chosen].Pod.Name,
			Why:  fmt.Sprintf("%d Pods wait: maxUnavailable %d is used up", wanted-chosen, v.limits.MaxUnavailable),
		})
	}
}

// candidates returns the Pods that could be brought to the target, the first to update first.
func (v *State) candidates(target *appsv1.ControllerRevision) ([]*rollout.Member, error) {
	forward := target.Name == v.workload.History.Update.Name
	candidates := slices.DeleteFunc(slices.Clone(v.members), func(m *rollout.Member) bool {
		return m.Updated == forward || !m.IsFree() || m.Specified
	})
	sorted, err := order.Sort(podsOf(candidates), v.pods(), order.Strategy{
		Priority: v.strategy.PriorityStrategy,
		Scatter:  v.strategy.ScatterStrategy,
	})
	if err != nil {
		return nil, fmt.Errorf("ordering the update: %w", err)
	}
	return inOrder(candidates, sorted), nil
}

// choose returns how many of the first candidates can be updated now.
func (v *State) choose(candidates []*rollout.Member, target *appsv1.ControllerRevision, number, limit int) int {
	forward := target.Name == v.workload.History.Update.Name
	c := budget.Candidates{}
	for _, m := range v.members {
		if !m.Available {
			c.Unavailable++
			if m.Updated == forward {
				c.UnavailableAtTarget++
			}
		}
	}
	for _, m := range candidates {
		c.Available = append(c.Available, m.Available)
	}
	return max(budget.Take(c, number, limit), startedOf(candidates, number))
}

// startedOf returns how many of the first candidates have left service for the update already. Their place is paid for, also where
// maxUnavailable is 0 and they could leave thanks to a Pod that has gone since.
func startedOf(candidates []*rollout.Member, number int) int {
	started := 0
	for _, m := range candidates[:min(number, len(candidates))] {
		if m.State != pub.LifecycleStatePreparingUpdate {
			break
		}
		started++
	}
	return started
}

// step updates one Pod after another to the same target, in place where that is wanted and can be done.
type step struct {
	*State
	updater *rollout.Updater
	target  *appsv1.ControllerRevision
	why     string
	refused bool
}

func (v *State) stepTo(target *appsv1.ControllerRevision) *step {
	options := v.Options.InPlace
	options.IgnoreClaims = v.inPlaceOnly() || !v.Options.RecreateOnClaimChange
	s := &step{State: v, target: target, updater: v.workload.UpdaterTo(target, options)}
	if details := v.strategy.InPlaceUpdateStrategy; details != nil {
		s.updater.GraceSeconds = details.GracePeriodSeconds
	}
	return s
}

func (s *step) take(m *rollout.Member, b *plan.Builder) {
	if !s.inPlace() {
		s.recreate(m, "recreate", b)
		return
	}
	switch refusal := s.updater.Refusal(m.Pod); {
	case refusal == "":
		s.updater.Update(m.Pod, s.why, b)
	case !s.inPlaceOnly():
		s.recreate(m, "recreate: "+refusal, b)
	case !s.refused:
		s.refused = true
		s.updater.HoldRefused(m.Pod, refusal, b)
	}
}

// recreate deletes the Pod, whose place is then filled at the target revision. A Pod that its preDelete hook holds is marked for deletion
// and waits.
func (s *step) recreate(m *rollout.Member, what string, b *plan.Builder) {
	event := fmt.Sprintf("successfully delete pod %s for update(revision %s)", m.Pod.Name, s.target.Name)
	if chain := s.workload.PrepareDelete(m.Pod, plan.Rollout); chain != nil {
		for _, version := range chain {
			version.After.GetLabels()[keys.SpecifiedDelete] = "true"
		}
		chain[0].Why = s.why
		chain[0].Event, chain[0].EventMessage = eventSuccessfulUpdatePodReCreate, event
		chain[0].FailedEvent = eventFailedUpdatePodReCreate
		b.Do(chain...)
		return
	}
	b.Do(s.deletion(m, plan.Action{
		Concern: plan.Rollout, What: what, Why: s.why,
		Event: eventSuccessfulUpdatePodReCreate, EventMessage: event, FailedEvent: eventFailedUpdatePodReCreate,
	})...)
}
