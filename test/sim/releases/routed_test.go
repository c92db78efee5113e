package releases

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromisesWithTraffic is the same for a Deployment that is released in batches while a route leads to its new Pods.
func TestPromisesWithTraffic(t *testing.T) { routedSuite(routed{}).Hold(t) }

// TestRunsWithTrafficRepeat checks that a failure could be repeated.
func TestRunsWithTrafficRepeat(t *testing.T) { routedSuite(routed{}).Repeat(t) }

// TestMistakesWithTrafficShow makes mistakes on purpose: the checks must see each of them.
func TestMistakesWithTrafficShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake routed
		want    string
	}{
		"the old template comes back as it was, and Pods go before traffic": {routed{stored: func(d *appsv1.Deployment) {
			delete(d.Spec.Template.Annotations, keys.TrafficFirst)
		}}, ruleLeads},
		"its annotation stays": {routed{wrong: func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && steer.IsTrafficFirst(a.Before.(*appsv1.Deployment)) {
				d.Spec.Template.Annotations = map[string]string{keys.TrafficFirst: "true"}
			}
		}}, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedSuite(tc.mistake).Break(t, tc.want)
		})
	}
}

// routed is a mistake in what is written, or in what the webhook stores; none by default.
type routed struct {
	wrong  func(*plan.Action)
	stored func(*appsv1.Deployment)
}

// routedSuite is a Rollout that leads traffic to the new Pods of a Deployment.
func routedSuite(r routed) promises.Suite {
	if r.wrong == nil {
		r.wrong = func(*plan.Action) {}
	}
	return promises.Suite{
		Scheme:  promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Watched: watched(&corev1.Service{}, &networkingv1.Ingress{}, emptyRoute(), &corev1.ConfigMap{}, &v1alpha1.TrafficRouting{}),
		Populate: func(w *promises.World) promises.Scenario {
			user := promises.User{Cluster: w.Cluster, Rand: w.Rand}
			s := &routedScenario{ways: w.Rand.Intn(3), scenario: scenario{Controllers: native.Controllers{User: user}, calm: w.Seed%2 == 0, people: people{
				User: user, ref: v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				style: v1beta1.RollingStylePartition, leads: true,
			}, stored: r.stored}}
			w.Rig.Sound = s.calm
			s.populate()
			s.people.populate()
			if s.Chance(50) { // then the stable ReplicaSet has spec.replicas Pods at the first step
				s.manifest.Strategy.RollingUpdate.MaxSurge = s.people.rollout().Spec.Strategy.Canary.Steps[0].Replicas
				s.apply()
			}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					c.Executor.Writer = s.Beside(c.Executor.Writer)
					return startRouted(c, r.wrong)
				},
				Act: s.act, Relent: s.relent,
				Others: []func() bool{
					s.StepDeployment, s.StepSets, s.people.approveLate, s.goBackLate, func() bool { return !s.calm && s.Unstick() },
				},
				Check: s.check, Converged: s.converged,
			}
		},
	}
}

// routedScenario is a scenario with traffic.
type routedScenario struct {
	scenario
	// ways is how often the old template is still to be put back.
	ways int
}

// goBackLate puts the old template back some time while requests are led to new Pods, and reports whether somebody thinks of it.
func (s *routedScenario) goBackLate() bool {
	d, route := s.Deployment(), s.people.route()
	if _, marked := steer.MarkOf(d); !marked || s.ways == 0 || shareOf(route, "web-canary") == 0 {
		return false
	}
	if !s.Chance(30) {
		return true
	}
	s.ways--
	for _, rs := range s.Sets() {
		if rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == d.Labels[keys.StableRevision] {
			s.manifest.Template.Spec.Containers[0].Image = rs.Spec.Template.Spec.Containers[0].Image
			s.apply()
		}
	}
	return true
}

// check returns the promises that were broken in a history, those about traffic included.
func (s *routedScenario) check(history []simulate.Change) []invariant.Violation {
	l, r := &ledger{calm: s.calm, batches: map[types.UID]types.UID{}, pods: map[types.UID]*corev1.Pod{}}, &roads{}
	for _, c := range history {
		l.judge(c)
		r.see(c)
		if text := r.broken(l.pods); text != "" && l.calm && l.isGuarded() {
			l.breaks(c, ruleLeads, "%s", text)
		}
	}
	return l.broken
}

func (s *routedScenario) converged() []string {
	return append(s.scenario.converged(), s.people.untouched()...)
}
