package releases

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleStay   = "no Pod of either version goes before the release ends"
	ruleThird  = "no Pod is made of a third version"
	ruleFields = "nothing but the fields of the release is changed"
	ruleAside  = "autoscalers are turned away before new Pods come"
)

var autoscalerKind = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")

// TestPromisesOverBlueGreens is the same for a Deployment whose new Pods come up beside all old ones, half of the time with traffic.
func TestPromisesOverBlueGreens(t *testing.T) { blueGreenSuite(nil).Hold(t) }

// TestRunsOfBlueGreensRepeat checks that a failure could be repeated.
func TestRunsOfBlueGreensRepeat(t *testing.T) { blueGreenSuite(nil).Repeat(t) }

// TestMistakesWithBlueGreensShow makes mistakes on purpose: the checks must see each of them.
func TestMistakesWithBlueGreensShow(t *testing.T) {
	begun := func(mistake func(*appsv1.Deployment)) func(*plan.Action) {
		return func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && d.Spec.MinReadySeconds == budget.BesideSeconds {
				mistake(d)
			}
		}
	}
	ended := func(mistake func(*plan.Action, *appsv1.Deployment)) func(*plan.Action) {
		return func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && d.Spec.MinReadySeconds != budget.BesideSeconds && a.Before != nil {
				mistake(a, d)
			}
		}
	}
	scaler := func(mistake func(before, after *autoscalingv2.HorizontalPodAutoscaler)) func(*plan.Action) {
		return func(a *plan.Action) {
			if after, is := a.After.(*autoscalingv2.HorizontalPodAutoscaler); is {
				mistake(a.Before.(*autoscalingv2.HorizontalPodAutoscaler), after)
			}
		}
	}
	for name, tc := range map[string]struct {
		wrong func(*plan.Action)
		want  string
	}{
		"a batch is all Pods": {begun(func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("100%"))
		}), ruleSteps},
		"an old Pod may be missing": {begun(func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		}), ruleStay},
		"the stable ReplicaSet is left as it is": {func(a *plan.Action) {
			if rs, is := a.After.(*appsv1.ReplicaSet); is && rs.Spec.MinReadySeconds == budget.BesideSeconds {
				rs.Spec.MinReadySeconds = 0
			}
		}, "at rest"}, // no step begins before it is raised
		"the size is changed": {begun(func(d *appsv1.Deployment) { *d.Spec.Replicas++ }), ruleFields},
		"it is paused in the end": {ended(func(_ *plan.Action, d *appsv1.Deployment) {
			if _, marked := d.Annotations[keys.InProgressing]; !marked {
				d.Spec.Paused = true
			}
		}), "at rest"},
		"its strategy is not restored": {ended(func(a *plan.Action, d *appsv1.Deployment) {
			d.Spec.Strategy = *a.Before.(*appsv1.Deployment).Spec.Strategy.DeepCopy()
		}), "at rest"},
		"its label stays": {ended(func(_ *plan.Action, d *appsv1.Deployment) {
			if d.Labels != nil {
				d.Labels[keys.StableRevision] = "x"
			}
		}), "at rest"},
		"autoscalers go on": {scaler(func(before, after *autoscalingv2.HorizontalPodAutoscaler) {
			after.Spec = before.Spec
		}), ruleAside},
		"autoscalers are forgotten": {scaler(func(before, after *autoscalingv2.HorizontalPodAutoscaler) {
			if before.Spec.ScaleTargetRef.Name != "web" {
				after.Spec.ScaleTargetRef.Name = "other"
			}
		}), "at rest"},
		"old ReplicaSets stay as they are": {func(a *plan.Action) {
			if rs, is := a.After.(*appsv1.ReplicaSet); is && rs.Spec.MinReadySeconds != budget.BesideSeconds && a.Before != nil {
				rs.Spec.MinReadySeconds = a.Before.(*appsv1.ReplicaSet).Spec.MinReadySeconds
			}
		}, "at rest"},
		"a Deployment whose Rollout is gone is left as it is": {func(a *plan.Action) {
			if d, is := a.After.(*appsv1.Deployment); is && a.Event == "OrphanedRelease" {
				before := a.Before.(*appsv1.Deployment)
				d.Labels, d.Annotations, d.Spec = before.Labels, before.Annotations, before.Spec
			}
		}, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blueGreenSuite(tc.wrong).Break(t, tc.want)
		})
	}
}

// blueGreenSuite is a Rollout of a Deployment in blueGreen style, with a mistake in what is written.
func blueGreenSuite(wrong func(*plan.Action)) promises.Suite {
	if wrong == nil {
		wrong = func(*plan.Action) {}
	}
	return promises.Suite{
		Scheme: promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Watched: watched(&corev1.Service{}, &networkingv1.Ingress{}, emptyRoute(), &corev1.ConfigMap{}, &v1alpha1.TrafficRouting{},
			&autoscalingv2.HorizontalPodAutoscaler{}),
		Populate: func(w *promises.World) promises.Scenario {
			user := promises.User{Cluster: w.Cluster, Rand: w.Rand}
			s := &blueGreens{scenario: scenario{
				Controllers: native.Controllers{User: user}, calm: w.Seed%2 == 0, people: people{
					User: user, ref: v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
					style: v1beta1.RollingStyleBlueGreen, leads: w.Seed%4 < 2,
				},
			}}
			w.Rig.Sound = s.calm
			s.populate()
			s.people.populate()
			s.people.create(s.autoscaler())
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					c.Executor.Writer = s.Beside(c.Executor.Writer)
					return startRouted(c, wrong)
				},
				Act: s.act, Relent: s.relent,
				Others: []func() bool{s.StepDeployment, s.StepSets, s.people.approveLate, s.rollBack, func() bool { return !s.calm && s.Unstick() }},
				Check:  s.check, Converged: s.converged,
			}
		},
	}
}

// blueGreens is a scenario with an autoscaler.
type blueGreens struct{ scenario }

func (s *blueGreens) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	a := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	a.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	a.Spec.MaxReplicas = 9
	return a
}

func (s *blueGreens) act() {
	if s.Chance(3) { // a tool writes the autoscaler back
		a, _ := s.Cluster.Get(simulate.Key{Kind: autoscalerKind, Namespace: "default", Name: "web"}).(*autoscalingv2.HorizontalPodAutoscaler)
		simulate.Update(s.Cluster, promises.UserActor, a, func(a *autoscalingv2.HorizontalPodAutoscaler) { a.Spec = s.autoscaler().Spec })
		return
	}
	s.scenario.act()
}

// rollBack puts the old template back where a third one waits.
func (s *blueGreens) rollBack() bool {
	r, d := s.people.rollout(), s.Deployment()
	if r == nil || d == nil {
		return false
	}
	for _, c := range r.Status.Conditions {
		if c.Type != v1beta1.ConditionProgressing || c.Reason != v1beta1.ReasonThirdVersion || r.Status.Phase != v1beta1.RolloutPhaseProgressing {
			continue
		}
		for _, rs := range s.Sets() {
			if rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == d.Labels[keys.StableRevision] && rs != replicasets.New(d, s.Sets()) {
				s.manifest.Template.Spec.Containers[0].Image = rs.Spec.Template.Spec.Containers[0].Image
				s.apply()
				return true
			}
		}
	}
	return false
}

// blueGreenLedger is the cluster up to a change.
type blueGreenLedger struct {
	canaryLedger
	sets map[types.UID]*appsv1.ReplicaSet
	// scales says that an autoscaler scales the Deployment, since a revision of the cluster.
	scales bool
	since  int64
}

// check returns the promises that were broken in a history.
func (s *blueGreens) check(history []simulate.Change) []invariant.Violation {
	l := &blueGreenLedger{sets: map[types.UID]*appsv1.ReplicaSet{}}
	l.ledger = ledger{calm: s.calm, batches: map[types.UID]types.UID{}, pods: map[types.UID]*corev1.Pod{}}
	for _, c := range history {
		if c.After == nil {
			delete(l.pods, c.Before.GetUID())
			delete(l.sets, c.Before.GetUID())
		}
		switch after := c.After.(type) {
		case *v1beta1.Rollout:
			l.judgeRollout(after)
		case *autoscalingv2.HorizontalPodAutoscaler:
			l.scales, l.since = after.Spec.ScaleTargetRef.Name == "web", c.Revision
		case *appsv1.Deployment:
			l.judgeDeployment(c, after)
		case *appsv1.ReplicaSet:
			l.judgeSet(c, after)
			l.sets[after.UID] = after
		case *corev1.Pod:
			l.pods[after.UID] = after
		}
		l.roads.see(c)
		if text := l.roads.broken(l.pods); text != "" && s.people.leads && l.calm && l.isGuarded() {
			l.breaks(c, ruleLeads, "%s", text)
		}
	}
	return l.ledger.broken
}

// isUnderWay tells whether a release has changed the strategy of the Deployment, and the webhook guards it.
func (l *blueGreenLedger) isUnderWay() bool {
	return l.now != nil && l.now.Annotations[keys.OriginalDeploymentStrategy] != "" && l.now.Annotations[keys.InProgressing] != "" &&
		l.now.Spec.MinReadySeconds == budget.BesideSeconds && l.isGuarded()
}

func (l *blueGreenLedger) judgeDeployment(c simulate.Change, after *appsv1.Deployment) {
	if l.now != nil && c.Pass != nil {
		if !sameBut(l.now.Spec, after.Spec) {
			l.breaks(c, ruleFields, "%+v", after.Spec)
		}
		if l.now.Spec.MinReadySeconds != budget.BesideSeconds && after.Spec.MinReadySeconds == budget.BesideSeconds && l.scales &&
			c.Pass.Seen[autoscalerKind] >= l.since {
			l.breaks(c, ruleAside, "it scales the Deployment")
		}
	}
	l.loose = !after.Spec.Paused && (l.loose || c.Actor == promises.UserActor && l.now != nil && l.now.Spec.Paused)
	l.now = after
}

// sameBut tells whether two specs are the same but for what a release of blueGreen style changes.
func sameBut(a, b appsv1.DeploymentSpec) bool {
	for _, spec := range []*appsv1.DeploymentSpec{&a, &b} {
		spec.Paused, spec.MinReadySeconds, spec.ProgressDeadlineSeconds, spec.Strategy.RollingUpdate = false, 0, nil, nil
	}
	return equality.Semantic.DeepEqual(a, b)
}

// judgeSet judges the size of a ReplicaSet while a release is under way.
func (l *blueGreenLedger) judgeSet(c simulate.Change, after *appsv1.ReplicaSet) {
	if !l.calm || !l.isUnderWay() {
		return
	}
	before := int32(0)
	if was, existed := l.sets[after.UID]; existed {
		before = *was.Spec.Replicas
	}
	size, hash := *after.Spec.Replicas, after.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	isStable := hash == l.now.Labels[keys.StableRevision]
	switch at := l.rollout.Status.BlueGreenStatus; {
	case size < before:
		l.breaks(c, ruleStay, "%d Pods are left of %d", size, before)
	case size == before || isStable || at == nil:
	case revisionOf(after) != at.UpdatedRevision:
		l.breaks(c, ruleThird, "%d Pods", size)
	case l.most != nil:
		if n, err := release.Planned(l.most, *l.now.Spec.Replicas); err == nil && size > n {
			l.breaks(c, ruleSteps, "%d Pods are to be updated at step %d, and %d may be", size, at.CurrentStepIndex, n)
		}
	}
}

// revisionOf returns the revision of a ReplicaSet as a Rollout computes it.
func revisionOf(rs *appsv1.ReplicaSet) string {
	template := rs.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return replicasets.Hash(template, nil)
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *blueGreens) converged() []string {
	problems := s.scenario.converged()
	d := s.Deployment()
	for _, rs := range s.Sets() {
		if rs.Spec.MinReadySeconds == budget.BesideSeconds {
			problems = append(problems, "at rest, ReplicaSet "+rs.Name+" has the minReadySeconds of a release")
		}
	}
	if _, left := d.Labels[keys.StableRevision]; left {
		problems = append(problems, "at rest, the Deployment has the label of the stable revision")
	}
	for _, a := range s.Cluster.Of(autoscalerKind) {
		if name := a.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef.Name; name != "web" {
			problems = append(problems, "at rest, the autoscaler scales "+name)
		}
	}
	return append(problems, s.people.untouched()...)
}
