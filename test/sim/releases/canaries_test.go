package releases

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleSpec   = "nothing of the spec changes but paused"
	ruleSecond = "a BatchRelease has one second Deployment with Pods"
)

// TestPromisesOverCanaries is the same for a Deployment whose new Pods run in a second one, half of the time with traffic.
func TestPromisesOverCanaries(t *testing.T) { canarySuite(nil).Hold(t) }

// TestWhatBrokeOnceHoldsOverCanaries lets a cluster live again that had Pods of two versions before the release began: the simulated webhook
// intercepted a template that the real one does not, because no traffic can be led between two versions.
func TestWhatBrokeOnceHoldsOverCanaries(t *testing.T) { canarySuite(nil).Again(t, 1068) }

// TestRunsOfCanariesRepeat checks that a failure could be repeated.
func TestRunsOfCanariesRepeat(t *testing.T) { canarySuite(nil).Repeat(t) }

// TestMistakesWithCanariesShow makes mistakes on purpose: the checks must see each of them.
func TestMistakesWithCanariesShow(t *testing.T) {
	second := func(mistake func(*appsv1.Deployment)) func(*plan.Action) {
		return func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && d.Name != "web" {
				mistake(d)
			}
		}
	}
	first := func(mistake func(*plan.Action, *appsv1.Deployment)) func(*plan.Action) {
		return func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && d.Name == "web" {
				mistake(a, d)
			}
		}
	}
	const gone = "a Deployment whose Rollout is gone is left as it is"
	for name, tc := range map[string]struct {
		wrong func(*plan.Action)
		want  string
	}{
		"a batch is all Pods": {second(func(d *appsv1.Deployment) { *d.Spec.Replicas = 9 }), ruleSteps},
		"nobody owns it":      {second(func(d *appsv1.Deployment) { d.OwnerReferences = nil }), "at rest"},
		"it stays paused":     {first(func(_ *plan.Action, d *appsv1.Deployment) { d.Spec.Paused = true }), "at rest"},
		"it is rolled out at once": {first(func(_ *plan.Action, d *appsv1.Deployment) {
			*d.Spec.Replicas = 1
		}), ruleSpec},
		"its label stays": {first(func(_ *plan.Action, d *appsv1.Deployment) {
			if d.Labels != nil {
				d.Labels[keys.StableRevision] = "x"
			}
		}), "at rest"},
		gone: {first(func(a *plan.Action, d *appsv1.Deployment) {
			if a.Event == "OrphanedRelease" {
				before := a.Before.(*appsv1.Deployment)
				d.Labels, d.Annotations, d.Spec = before.Labels, before.Annotations, before.Spec
			}
		}), "at rest"},
		"a further step takes its Pods away": {func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && d.Name != "web" && a.Verb == plan.Update {
				*d.Spec.Replicas = 0
			}
		}, ruleLeads},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canarySuiteOf(tc.wrong, func(s *canaries) {
				if name == gone { // else it is seldom so in the end
					s.people.forces, s.people.leads = true, false
				}
			}).Break(t, tc.want)
		})
	}
}

// canarySuite is a Rollout of a Deployment in canary style, with a mistake in what is written.
func canarySuite(wrong func(*plan.Action)) promises.Suite {
	return canarySuiteOf(wrong, func(*canaries) {})
}

func canarySuiteOf(wrong func(*plan.Action), set func(*canaries)) promises.Suite {
	if wrong == nil {
		wrong = func(*plan.Action) {}
	}
	return promises.Suite{
		Scheme:  promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Watched: watched(&corev1.Service{}, &networkingv1.Ingress{}, emptyRoute(), &corev1.ConfigMap{}, &v1alpha1.TrafficRouting{}),
		Populate: func(w *promises.World) promises.Scenario {
			user := promises.User{Cluster: w.Cluster, Rand: w.Rand}
			s := &canaries{seconds: map[string]*native.Controllers{}, scenario: scenario{
				Controllers: native.Controllers{User: user}, calm: w.Seed%2 == 0, people: people{
					User: user, ref: v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
					style: v1beta1.RollingStyleCanary, leads: w.Seed%4 < 2,
				},
			}}
			set(s)
			w.Rig.Sound = s.calm
			s.populate()
			s.people.populate()
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					c.Executor.Writer = s.Beside(c.Executor.Writer)
					return startRouted(c, wrong)
				},
				Act: s.act, Relent: s.relent,
				Others: []func() bool{s.StepDeployment, s.StepSets, s.stepSeconds, s.people.approveLate, func() bool { return !s.calm && s.Unstick() }},
				Check:  s.check, Converged: s.converged,
			}
		},
	}
}

// canaries is a scenario with second Deployments, each beside its own controllers.
type canaries struct {
	scenario
	seconds map[string]*native.Controllers
}

// all returns the second Deployments.
func (s *canaries) all() (out []*appsv1.Deployment) {
	for _, object := range s.Cluster.Of(appsv1.SchemeGroupVersion.WithKind("Deployment")) {
		if d := object.(*appsv1.Deployment); d.Name != "web" {
			out = append(out, d)
		}
	}
	return out
}

// stepSeconds is one act of the controllers of second Deployments.
func (s *canaries) stepSeconds() bool {
	busy := false
	for _, d := range s.all() {
		if s.seconds[d.Name] == nil {
			s.seconds[d.Name] = &native.Controllers{User: s.User, Name: d.Name}
		}
		busy = s.seconds[d.Name].StepDeployment() || busy
		busy = s.seconds[d.Name].StepSets() || busy
	}
	return busy
}

func (s *canaries) act() {
	if s.Chance(30) {
		s.stepSeconds()
		return
	}
	s.scenario.act()
}

// canaryLedger is the cluster up to a change.
type canaryLedger struct {
	ledger
	roads
	seconds map[types.UID]*appsv1.Deployment
	// mine are the ReplicaSets of the Deployment itself.
	mine map[types.UID]bool
}

// check returns the promises that were broken in a history.
func (s *canaries) check(history []simulate.Change) []invariant.Violation {
	l := &canaryLedger{
		ledger:  ledger{calm: s.calm, batches: map[types.UID]types.UID{}, pods: map[types.UID]*corev1.Pod{}},
		seconds: map[types.UID]*appsv1.Deployment{}, mine: map[types.UID]bool{},
	}
	for _, c := range history {
		if c.After == nil {
			delete(l.pods, c.Before.GetUID())
			delete(l.seconds, c.Before.GetUID())
		}
		switch after := c.After.(type) {
		case *v1beta1.Rollout:
			l.judgeRollout(after)
		case *v1beta1.BatchRelease:
			if by := metav1.GetControllerOf(after); by != nil {
				l.batches[after.UID] = by.UID
			}
		case *appsv1.Deployment:
			l.judgeDeployment(c, after)
		case *appsv1.ReplicaSet:
			l.mine[after.UID] = metav1.IsControlledBy(after, l.now)
		case *corev1.Pod:
			l.judgePod(c, after)
			l.pods[after.UID] = after
		}
		l.roads.see(c)
		if text := l.roads.broken(l.pods); text != "" && s.people.leads && l.calm && l.isGuarded() {
			l.breaks(c, ruleLeads, "%s", text)
		}
	}
	return l.ledger.broken
}

func (l *canaryLedger) judgeDeployment(c simulate.Change, after *appsv1.Deployment) {
	if after.Name == "web" {
		if l.now != nil && c.Pass != nil && !sameButPaused(l.now.Spec, after.Spec) {
			l.breaks(c, ruleSpec, "%+v", after.Spec)
		}
		l.ledger.see(c, after)
		return
	}
	before := l.seconds[after.UID]
	l.seconds[after.UID] = after
	owner, update := metav1.GetControllerOf(after), replicasets.Hash(&l.now.Spec.Template, nil)
	if c.Pass == nil || owner == nil || after.DeletionTimestamp != nil {
		return
	}
	isRaised := before == nil || *before.Spec.Replicas < *after.Spec.Replicas
	if n, err := release.Planned(l.most, *l.now.Spec.Replicas); err == nil && l.calm && isRaised && *after.Spec.Replicas > n &&
		l.batches[owner.UID] == l.rollout.UID && after.Annotations[keys.CanaryRevision] == update {
		l.breaks(c, ruleSteps, "%d Pods are to be updated at step %d, and %d may be", *after.Spec.Replicas, l.rollout.Status.CurrentStepIndex, n)
	}
	for _, other := range l.seconds {
		if other.UID != after.UID && isRaised && *other.Spec.Replicas > 0 && other.DeletionTimestamp == nil && metav1.IsControlledBy(other, &metav1.ObjectMeta{UID: owner.UID}) &&
			other.Annotations[keys.CanaryRevision] == after.Annotations[keys.CanaryRevision] {
			l.breaks(c, ruleSecond, "%s is there, too", other.Name)
		}
	}
}

func sameButPaused(a, b appsv1.DeploymentSpec) bool {
	a.Paused, b.Paused = false, false
	return equality.Semantic.DeepEqual(a, b)
}

// judgePod judges the deletion of a Pod of the Deployment itself: where nothing else goes wrong, as many stay as have to, however many the
// second one has.
func (l *canaryLedger) judgePod(c simulate.Change, after *corev1.Pod) {
	before, existed := c.Before.(*corev1.Pod)
	isMine := func(p *corev1.Pod) bool {
		by := metav1.GetControllerOf(p)
		return by != nil && l.mine[by.UID]
	}
	if !l.calm || !existed || before.DeletionTimestamp != nil || after.DeletionTimestamp == nil || !pod.IsReady(before) || !isMine(before) {
		return
	}
	ready := int32(-1)
	for _, p := range l.pods {
		if p.DeletionTimestamp == nil && pod.IsReady(p) && isMine(p) {
			ready++
		}
	}
	if limits := native.LimitsOf(l.now); ready < limits.Replicas-limits.Unavailable {
		l.breaks(c, ruleAvailable, "%d of %d are left", ready, limits.Replicas-limits.Unavailable)
	}
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *canaries) converged() []string {
	problems := s.scenario.converged()
	for _, d := range s.all() {
		problems = append(problems, "at rest, there is a second Deployment "+d.Name)
	}
	if d := s.Deployment(); d != nil {
		if _, left := d.Labels[keys.StableRevision]; left {
			problems = append(problems, "at rest, the Deployment has the label of the stable revision")
		}
	}
	return append(problems, s.people.untouched()...)
}
