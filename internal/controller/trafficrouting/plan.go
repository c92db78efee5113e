package trafficrouting

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// recheck is when to look again at what sends no event: kinds that the cluster does not serve yet, and scripts.
const recheck = 10 * time.Second

// isHeld reports whether a Rollout that is there has a release.
func (s Snapshot) isHeld() bool { return len(s.holders()) > 0 }

// holders returns the Rollouts that have a release, and are there.
func (s Snapshot) holders() []string {
	return slices.DeleteFunc(slices.Clone(s.Rollouts), func(name string) bool { return !rules.IsShared(s.Routing, name) })
}

// isStale reports whether a finalizer is that of a Rollout which is gone, or names another TrafficRouting.
func (s Snapshot) isStale(finalizer string) bool {
	return strings.HasPrefix(finalizer, keys.TrafficRoutingProgressing) &&
		!slices.ContainsFunc(s.Rollouts, func(name string) bool { return rules.ProgressingFinalizer(name) == finalizer })
}

// leads reports whether the routes are to lead traffic as the TrafficRouting says.
func (s Snapshot) leads() bool { return s.Routing.DeletionTimestamp == nil && s.isHeld() }

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(s Snapshot) plan.Plan {
	t := s.Routing
	b := plan.For(fmt.Sprintf("TrafficRouting %s/%s   phase %s, releases of %v", t.Namespace, t.Name, phase(s), s.holders()))
	s.finalizers(b)
	goal := release.Action{Do: release.RestoreRoutes}
	if s.leads() {
		goal = release.Action{Do: release.SetRoutes, Step: 1}
	}
	b.Do(s.Observed.Plan(goal)...)
	if seen := s.Observed.Seen(); seen.Missing != "" || seen.Problem != "" {
		b.Recheck(recheck, "what leads traffic may be there or put right")
	}
	return b.Plan()
}

// finalizers has the TrafficRouting stay until its routes are restored. It gets its finalizer before anything else is written, and loses it
// when nothing is left to restore.
func (s Snapshot) finalizers(b *plan.Builder) {
	t := s.Routing
	wanted := slices.DeleteFunc(slices.Clone(t.Finalizers), s.isStale)
	own := slices.Contains(wanted, keys.TrafficRoutingFinalizer)
	action := plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: t, What: "change the finalizers"}
	switch {
	case t.DeletionTimestamp == nil && !own:
		wanted = append(wanted, keys.TrafficRoutingFinalizer)
		action.Why = "its routes are restored before it goes"
	case t.DeletionTimestamp != nil && own && s.Observed.Seen().Routes == "":
		wanted = slices.DeleteFunc(wanted, func(f string) bool { return f == keys.TrafficRoutingFinalizer })
		action.Why = "its routes are restored"
	default:
		action.Why = "Rollouts that had a release are gone or name another one"
	}
	if slices.Equal(wanted, t.Finalizers) {
		return
	}
	after := t.DeepCopy()
	after.Finalizers = wanted
	action.After = after
	b.First(action)
}

// phase returns what the TrafficRouting is doing.
func phase(s Snapshot) v1alpha1.TrafficRoutingPhase {
	seen := s.Observed.Seen()
	switch {
	case s.Routing.DeletionTimestamp != nil:
		return v1alpha1.TrafficRoutingPhaseTerminating
	case s.isHeld():
		return v1alpha1.TrafficRoutingPhaseProgressing
	case seen.Routes != "":
		return v1alpha1.TrafficRoutingPhaseFinalizing
	case seen.Missing != "":
		return v1alpha1.TrafficRoutingPhaseInitial
	}
	return v1alpha1.TrafficRoutingPhaseHealthy
}

// Status says what happens, and what it waits for.
func Status(s Snapshot, _ plan.Plan, _ apply.Outcome) v1alpha1.TrafficRoutingStatus {
	return v1alpha1.TrafficRoutingStatus{ObservedGeneration: s.Routing.Generation, Phase: phase(s), Message: message(s)}
}

func message(s Snapshot) string {
	seen := s.Observed.Seen()
	wants := release.Route(s.Observed.Steps[0]) // there is one
	trouble := ""
	if seen.Problem != "" {
		trouble = ": " + seen.Problem
	}
	switch phase(s) {
	case v1alpha1.TrafficRoutingPhaseTerminating:
		if seen.Routes == "" && s.isHeld() {
			return fmt.Sprintf("the routes are restored; it goes when the releases of %s end", strings.Join(s.holders(), ", "))
		}
		return "the routes are being restored before it goes" + trouble
	case v1alpha1.TrafficRoutingPhaseProgressing:
		if seen.Routes == wants {
			return fmt.Sprintf("the routes lead traffic to the new versions for the releases of %s", strings.Join(s.holders(), ", "))
		}
		return "the routes are about to lead traffic to the new versions" + trouble
	case v1alpha1.TrafficRoutingPhaseFinalizing:
		return "the last release is over: the routes are being restored" + trouble
	case v1alpha1.TrafficRoutingPhaseInitial:
		return seen.Missing + " is not there: create it"
	}
	return "no release: the routes are as they were written"
}
