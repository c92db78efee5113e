package deployment

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller beside the native ones in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestACrashAtAnyWriteOfARollout has the controller crash at each write of a release.
func TestACrashAtAnyWriteOfARollout(t *testing.T) { suite(Plan).CrashAnywhere(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	misplan := func(wrong func(*plan.Action, *appsv1.ReplicaSet)) promises.Suite {
		return suite(promises.Misplan(Plan, func(a *plan.Action) {
			if rs, is := a.After.(*appsv1.ReplicaSet); is {
				wrong(a, rs)
			}
		}))
	}
	stale := suite(Plan)
	stale.Mistake = promises.Mistake{TrustsCache: true, Unconditional: true}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it does not hold what it takes from": {misplan(func(_ *plan.Action, rs *appsv1.ReplicaSet) {
			delete(rs.Annotations, keys.HeldReplicas)
		}), ruleMost},
		"it never lets go": {misplan(func(a *plan.Action, rs *appsv1.ReplicaSet) {
			if before, is := a.Before.(*appsv1.ReplicaSet); is && isHeld(before) && !isHeld(rs) {
				rs.Annotations[keys.HeldReplicas] = before.Annotations[keys.HeldReplicas]
			}
		}), "still held"},
		"it updates one more than it may": {suite(func(v State) plan.Plan {
			v.limits.Updated = min(v.limits.Updated+1, v.limits.Replicas)
			return Plan(v)
		}), ruleLimit},
		"it takes one more than the budget allows": {suite(func(v State) plan.Plan {
			v.limits.Unavailable++
			return Plan(v)
		}), ruleAvailable},
		"it moves in a Deployment that is not paused": {suite(func(v State) plan.Plan {
			if v.released && !v.Deployment.Spec.Paused {
				v.Deployment = v.Deployment.DeepCopy()
				v.Deployment.Spec.Paused = true
			}
			return Plan(v)
		}), rulePaused},
		"it makes the new ReplicaSet of another name": {misplan(func(a *plan.Action, rs *appsv1.ReplicaSet) {
			if a.Verb == plan.Create {
				rs.Name += "x"
			}
		}), ruleNative},
		"it trusts a cache and forgets conditions": {stale, "revision"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

// TestWithoutThePolicyMovesExceedTheSurge shows why ReplicaSets are held: without it, the native controller gives back what a move takes.
func TestWithoutThePolicyMovesExceedTheSurge(t *testing.T) {
	suiteOf(Plan, func(s *scenario) { s.Lawless = true }).Break(t, ruleMost)
}

// suite is the controller, with a planner that may be mistaken, in clusters with a Deployment whose releases never end.
func suite(planned func(State) plan.Plan) promises.Suite {
	return suiteOf(planned, func(*scenario) {})
}

func suiteOf(planned func(State) plan.Plan, set func(*scenario)) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(v1beta1.AddToScheme),
		Watched: []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &v1beta1.Rollout{}, &v1beta1.BatchRelease{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{Controllers: native.Controllers{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}, calm: w.Seed%2 == 0}
			set(s)
			w.Rig.Sound = s.calm
			w.Rig.Kubelet.IsBad = func(image string) bool { return image == bad }
			s.populate()
			planner := promises.Planner[Snapshot, State]{
				Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot },
			}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind()
					k.Plan = planner.In(w)
					k.Indexes = func(ctx context.Context, indexer client.FieldIndexer) error {
						return observe.AddControllerIndex(ctx, indexer, &appsv1.ReplicaSet{})
					}
					c.Executor.Writer = s.Beside(c.Executor.Writer)
					return promises.Start(k, c.Runtime(), c)
				},
				Owner: func() client.Object { return s.Deployment() },
				Act:   s.act, Relent: s.relent, Rollout: s.rollOut, Check: s.check, Converged: s.converged,
				Others: []func() bool{s.StepDeployment, s.StepSets, func() bool { return !s.calm && s.Unstick() }},
			}
		},
	}
}

// bad is an image that never gets ready.
const bad = "app:v4"

// scenario is users of a Deployment beside the native controllers.
type scenario struct {
	native.Controllers
	// calm means that the Deployment is not scaled and its Pods do not fail of themselves, so that its budget must hold at any moment.
	calm bool
}

// populate creates a Deployment whose Pods run, and begins a release.
func (s *scenario) populate() {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1 + s.Rand.Intn(8))), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
			},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: s.budget()},
		},
	}
	s.create(d)
	kubelet := simulate.NewKubelet(s.Cluster)
	for busy := true; busy; {
		busy = s.StepDeployment() || s.StepSets()
		for _, p := range s.Pods() {
			busy = kubelet.Step(p) || busy
		}
	}
	s.change(func(d *appsv1.Deployment) { s.begin(d, "app:v2") })
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) budget() *appsv1.RollingUpdateDeployment {
	b := &appsv1.RollingUpdateDeployment{MaxSurge: s.Amount(3), MaxUnavailable: s.Amount(3)}
	if b.MaxSurge.IntValue() == 0 && b.MaxUnavailable.IntValue() == 0 {
		b.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	return b
}

func (s *scenario) change(how func(*appsv1.Deployment)) {
	if d := s.Deployment(); d != nil {
		simulate.Update(s.Cluster, promises.UserActor, d, how)
	}
}

// begin has a Deployment wait for its batches, as a webhook and the controller of BatchReleases do.
func (s *scenario) begin(d *appsv1.Deployment, image string) {
	d.Spec.Paused = true
	d.Spec.Template = *d.Spec.Template.DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = image
	d.Labels = map[string]string{keys.AdvancedDeployment: "true"}
	s.setStrategy(d, replicasets.Strategy{RollingStyle: replicasets.RollingStyle, Partition: *s.partition()})
}

func (s *scenario) partition() *intstr.IntOrString {
	p := s.Amount(8)
	if p.Type == intstr.Int && p.IntVal == 0 {
		p.IntVal = 1
	}
	return p
}

func (s *scenario) setStrategy(d *appsv1.Deployment, strategy replicasets.Strategy) {
	annotations := map[string]string{keys.DeploymentStrategy: strategy.String()}
	for key, value := range d.Annotations {
		if key != keys.DeploymentStrategy {
			annotations[key] = value
		}
	}
	d.Annotations = annotations
}

// end takes everything off a Deployment that says that it is released in batches.
func (s *scenario) end(d *appsv1.Deployment) {
	d.Spec.Paused, d.Labels = false, nil
	annotations := map[string]string{}
	for key, value := range d.Annotations {
		if key != keys.DeploymentStrategy {
			annotations[key] = value
		}
	}
	d.Annotations = annotations
}

// act is what users do, and Rollouts in their name.
func (s *scenario) act() {
	switch n := s.Rand.Intn(100); {
	case n < 60:
		if s.Chance(50) {
			s.StepDeployment()
		} else {
			s.StepSets()
		}
	case n < 75: // the next batch
		s.change(func(d *appsv1.Deployment) {
			if d.Annotations[keys.DeploymentStrategy] != "" {
				s.setStrategy(d, replicasets.Strategy{Partition: *s.partition(), Paused: s.Chance(10)})
			}
		})
	case n < 82:
		s.change(func(d *appsv1.Deployment) { s.begin(d, s.Image()) })
	case n < 86: // somebody writes the manifest back
		s.change(func(d *appsv1.Deployment) { d.Spec.Paused = !d.Spec.Paused })
	case n < 88:
		s.change(s.end)
	case n < 90:
		s.takeName()
	case s.calm:
	case n < 95:
		s.change(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(s.Rand.Intn(10))) })
	case n < 98:
		s.change(func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = s.budget() })
	default:
		if pods := s.Pods(); len(pods) > 0 {
			s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
		}
	}
}

// takeName creates a ReplicaSet of somebody else with the name that the new one of an image would have.
func (s *scenario) takeName() {
	d := s.Deployment()
	template := d.Spec.Template.DeepCopy()
	template.Spec.Containers[0].Image = s.Image()
	s.create(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: replicasets.NameOf(d, replicasets.Hash(template, d.Status.CollisionCount))},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32), Template: *template},
	})
}

// relent has the release go on, or be over, with an image that gets ready.
func (s *scenario) relent() {
	s.change(func(d *appsv1.Deployment) {
		if s.Chance(30) {
			s.end(d)
		} else {
			d.Spec.Paused = true
		}
		if d.Annotations[keys.DeploymentStrategy] != "" {
			s.setStrategy(d, replicasets.Strategy{Partition: *s.partition()})
		}
		if d.Spec.Template.Spec.Containers[0].Image == bad {
			d.Spec.Template = *d.Spec.Template.DeepCopy()
			d.Spec.Template.Spec.Containers[0].Image = "app:v1"
		}
	})
}

// rollOut is a batch of a release that begins.
func (s *scenario) rollOut() {
	s.change(func(d *appsv1.Deployment) {
		image := "app:v2"
		if d.Spec.Template.Spec.Containers[0].Image == image {
			image = "app:v3"
		}
		s.begin(d, image)
	})
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	d := s.Deployment()
	v := Classify(Snapshot{Deployment: d, Sets: s.Sets()})
	total, active := int32(0), 0
	for _, rs := range v.all() {
		total += sizeOf(rs)
		if sizeOf(rs) > 0 {
			active++
		}
		if isHeld(rs) {
			wrong("%s is still held", rs.Name)
		}
		if _, marked := rs.Annotations[keys.DeploymentStrategy]; marked && !v.released {
			wrong("%s has an annotation of a release that is over", rs.Name)
		}
	}
	fresh := int32(0)
	if v.fresh != nil {
		fresh = sizeOf(v.fresh)
	}
	switch {
	case v.problem != nil:
		wrong("%v", v.problem)
	case !d.Spec.Paused && (fresh != *d.Spec.Replicas || total != fresh):
		wrong("of %d replicas %d are updated, and there are %d", *d.Spec.Replicas, fresh, total)
	case v.released && d.Spec.Paused && fresh < v.limits.Updated:
		wrong("%d Pods are updated, want %d: %s", fresh, v.limits.Updated, Plan(v))
	case v.released && active > 1 && total != v.limits.Replicas+v.limits.Surge:
		wrong("there are %d replicas, want %d: %s", total, v.limits.Replicas+v.limits.Surge, v.summary())
	}
	return problems
}
