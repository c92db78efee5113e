package releases

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/batchrelease"
	"github.com/seed-69ecc383/kruise/internal/controller/deployment"
	"github.com/seed-69ecc383/kruise/internal/controller/nativedaemonset"
	"github.com/seed-69ecc383/kruise/internal/controller/rollout"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleSteps     = "no more Pods are updated than the steps say"
	ruleStrategy  = "the strategy is the user's"
	ruleAvailable = "no Pod is taken that has to stay available"
)

// TestPromises is scenarios 14 and 15 with many seeds: the controllers are killed at each write, their caches lag, answers are lost, while a
// tool writes the manifest back and users disable, delete and force things. In the end the Deployment is what its manifest says.
func TestPromises(t *testing.T) { suite(nil).Hold(t) }

// TestWhatBrokeOnceHolds lets a cluster live again in which a manifest took the mark off a Deployment whose Rollout was being deleted: the
// BatchRelease froze it once more before it went, and nobody knew of it any more.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(nil).Again(t, 178) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(nil).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*plan.Action, *appsv1.Deployment)
		want    string
	}{
		"a batch is all Pods": {func(_ *plan.Action, d *appsv1.Deployment) {
			if _, is := d.Annotations[keys.DeploymentStrategy]; is {
				d.Annotations[keys.DeploymentStrategy] = `{"partition":"100%"}`
			}
		}, ruleSteps},
		"it stays paused": {func(_ *plan.Action, d *appsv1.Deployment) { d.Spec.Paused = true }, "at rest"},
		"the strategy is Recreate meanwhile": {func(_ *plan.Action, d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}, ruleStrategy},
		"a Deployment whose Rollout is gone is left as it is": {func(a *plan.Action, d *appsv1.Deployment) {
			if a.Event == "OrphanedRelease" {
				before := a.Before.(*appsv1.Deployment)
				d.Labels, d.Annotations, d.Spec = before.Labels, before.Annotations, before.Spec
			}
		}, "at rest"},
		"its label stays": {func(_ *plan.Action, d *appsv1.Deployment) {
			if d.Labels != nil {
				d.Labels[keys.AdvancedDeployment] = "true"
			}
		}, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(tc.mistake).Break(t, tc.want)
		})
	}
}

// all are the controllers. Each knows its owners by their names.
type all []*promises.Process

func (a all) Hear(e simulate.Event, queue *simulate.Queue) {
	for _, p := range a {
		p.Hear(e, queue)
	}
}

func (a all) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	first := reconcile.Result{}
	for _, p := range a {
		result, err := p.Reconcile(ctx, request)
		if err != nil {
			return result, err
		}
		if first.RequeueAfter == 0 || result.RequeueAfter > 0 && result.RequeueAfter < first.RequeueAfter {
			first = result
		}
	}
	return first, nil
}

// watched are the kinds that the controllers have caches of.
func watched(more ...client.Object) []client.Object {
	return append([]client.Object{
		&v1beta1.Rollout{}, &v1beta1.BatchRelease{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Pod{},
		&appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1beta1.CloneSet{}, &appsv1beta1.StatefulSet{}, &appsv1beta1.DaemonSet{},
	}, more...)
}

// start starts all controllers, with a mistake in what they write.
func start(c promises.Connection, wrong func(*plan.Action)) simulate.Process {
	return startWith(rollout.Kind(rollout.Options{}), c, wrong)
}

func startWith(
	rollouts loop.Kind[*v1beta1.Rollout, rollout.State, v1beta1.RolloutStatus], c promises.Connection, wrong func(*plan.Action),
) all {
	if indexer, is := c.Cached.Reader.(client.FieldIndexer); is {
		err := observe.AddControllerIndex(context.Background(), indexer, &appsv1.ReplicaSet{}, &appsv1.ControllerRevision{})
		if err != nil {
			panic(err)
		}
	}
	batches, deployments, daemons := batchrelease.Kind(batchrelease.Options{}), deployment.Kind(), nativedaemonset.Kind()
	rollouts.Plan = promises.Misplan(rollouts.Plan, wrong)
	batches.Plan = promises.Misplan(batches.Plan, wrong)
	deployments.Plan = promises.Misplan(deployments.Plan, wrong)
	daemons.Plan = promises.Misplan(daemons.Plan, wrong)
	return all{
		promises.Start(rollouts, c.Runtime(), c), promises.Start(batches, c.Runtime(), c), promises.Start(deployments, c.Runtime(), c),
		promises.Start(daemons, c.Runtime(), c),
	}
}

// suite is a Rollout of a Deployment, with a mistake in what is written to the Deployment.
func suite(mistake func(*plan.Action, *appsv1.Deployment)) promises.Suite {
	wrong := func(a *plan.Action) {
		if d, is := a.After.(*appsv1.Deployment); is && mistake != nil {
			mistake(a, d)
		}
	}
	return promises.Suite{
		Scheme:  promises.Scheme(v1beta1.AddToScheme),
		Watched: watched(),
		Populate: func(w *promises.World) promises.Scenario {
			user := promises.User{Cluster: w.Cluster, Rand: w.Rand}
			s := &scenario{Controllers: native.Controllers{User: user}, calm: w.Seed%2 == 0, people: people{
				User: user, ref: v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				style: v1beta1.RollingStylePartition,
			}}
			w.Rig.Sound = s.calm
			s.populate()
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					c.Executor.Writer = s.Beside(c.Executor.Writer)
					return start(c, wrong)
				},
				Act: s.act, Relent: s.relent, Others: []func() bool{s.StepDeployment, s.StepSets, s.people.approveLate, func() bool { return !s.calm && s.Unstick() }},
				Check: s.check, Converged: s.converged,
			}
		},
	}
}

// ledger is the cluster up to a change.
type ledger struct {
	calm    bool
	now     *appsv1.Deployment
	rollout *v1beta1.Rollout
	// most is the largest step that the release has come to: one that is gone back from may still be under way.
	most *intstr.IntOrString
	// batches are the Rollouts that control BatchReleases.
	batches map[types.UID]types.UID
	pods    map[types.UID]*corev1.Pod
	// loose means that a user has unpaused the Deployment while the Rollout was disabled.
	loose  bool
	broken []invariant.Violation
}

// check returns the promises that were broken in a history.
func (s *scenario) check(history []simulate.Change) []invariant.Violation {
	l := &ledger{calm: s.calm, batches: map[types.UID]types.UID{}, pods: map[types.UID]*corev1.Pod{}}
	for _, c := range history {
		l.judge(c)
	}
	return l.broken
}

// judge judges a change.
func (l *ledger) judge(c simulate.Change) {
	switch after := c.After.(type) {
	case *v1beta1.Rollout:
		l.judgeRollout(after)
		l.inherit()
	case *v1beta1.BatchRelease:
		if by := metav1.GetControllerOf(after); by != nil {
			l.batches[after.UID] = by.UID
		}
	case *appsv1.Deployment:
		if l.now != nil && c.Pass != nil && !equality.Semantic.DeepEqual(l.now.Spec.Strategy, after.Spec.Strategy) {
			l.breaks(c, ruleStrategy, "%+v", after.Spec.Strategy)
		}
		l.see(c, after)
		l.inherit()
	case *appsv1.ReplicaSet:
		l.judgeSet(c, after)
	case *corev1.Pod:
		l.judgePod(c, after)
		l.pods[after.UID] = after
	case nil:
		delete(l.pods, c.Before.GetUID())
	}
}

// see notes the Deployment as it is.
func (l *ledger) see(c simulate.Change, after *appsv1.Deployment) {
	l.loose = !after.Spec.Paused && (l.loose || c.Actor == promises.UserActor && l.now != nil && l.now.Spec.Paused)
	l.now = after
}

// isGuarded tells whether the webhook keeps the Deployment paused: of a Rollout that is disabled or deleted it does not, so that the
// Deployment can be let go by hand if no manager is there any more.
func (l *ledger) isGuarded() bool {
	r := l.rollout
	return r != nil && !l.loose && r.DeletionTimestamp == nil && !r.Spec.Disabled &&
		r.Status.Phase != v1beta1.RolloutPhaseDisabling && r.Status.Phase != v1beta1.RolloutPhaseDisabled
}

func (l *ledger) breaks(c simulate.Change, rule, format string, args ...any) {
	l.broken = append(l.broken, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name + ": " + fmt.Sprintf(format, args...)})
}

// judgeRollout notes how far the steps are.
func (l *ledger) judgeRollout(r *v1beta1.Rollout) {
	l.rollout = r
	at, steps := releaseOf(r), steer.StepsOf(&r.Spec.Strategy).Steps
	isReleasing := r.Status.Phase == v1beta1.RolloutPhaseProgressing && at != nil && at.FinalisingStep == "" &&
		at.CurrentStepIndex > 0 && int(at.CurrentStepIndex) <= len(steps) && r.DeletionTimestamp == nil && !r.Spec.Disabled
	if !isReleasing {
		l.most = nil
		return
	}
	now := steps[at.CurrentStepIndex-1].Replicas
	if l.most == nil || planned(now, 100) > planned(l.most, 100) {
		l.most = now
	}
}

// inherit notes how many Pods another Rollout has let through, whose finalizer was removed by hand: they may be updated until a BatchRelease
// of this one says its own step.
func (l *ledger) inherit() {
	if l.most == nil || l.now == nil {
		return
	}
	strategy, err := replicasets.Parse(l.now.Annotations[keys.DeploymentStrategy])
	by, claimed := steer.ClaimOf(l.now)
	if err != nil || claimed && l.batches[by.UID] == l.rollout.UID {
		return
	}
	if planned(&strategy.Partition, 100) > planned(l.most, 100) {
		l.most = &strategy.Partition
	}
}

func planned(step *intstr.IntOrString, replicas int32) int32 {
	n, err := release.DeploymentLimit(step, replicas)
	if err != nil {
		panic(err)
	}
	return n
}

// judgeSet judges the size of the new ReplicaSet while a release follows its steps.
func (l *ledger) judgeSet(c simulate.Change, after *appsv1.ReplicaSet) {
	before, existed := c.Before.(*appsv1.ReplicaSet)
	if !l.calm || l.most == nil || !existed || c.Pass == nil || *before.Spec.Replicas >= *after.Spec.Replicas ||
		replicasets.New(l.now, []*appsv1.ReplicaSet{after}) == nil {
		return
	}
	if _, marked := steer.MarkOf(l.now); marked && *after.Spec.Replicas > planned(l.most, *l.now.Spec.Replicas) {
		l.breaks(c, ruleSteps, "%d Pods are to be updated at step %d, which says %s",
			*after.Spec.Replicas, l.rollout.Status.CurrentStepIndex, l.most)
	}
}

// judgePod judges the deletion of a Pod: where nothing else goes wrong, as many stay available as have to.
func (l *ledger) judgePod(c simulate.Change, after *corev1.Pod) {
	before, existed := c.Before.(*corev1.Pod)
	if !l.calm || !existed || before.DeletionTimestamp != nil || after.DeletionTimestamp == nil || !pod.IsReady(before) {
		return
	}
	ready := int32(-1)
	for _, p := range l.pods {
		if p.DeletionTimestamp == nil && pod.IsReady(p) {
			ready++
		}
	}
	if limits := native.LimitsOf(l.now); ready < limits.Replicas-limits.Unavailable {
		l.breaks(c, ruleAvailable, "%d of %d are left", ready, limits.Replicas-limits.Unavailable)
	}
}
