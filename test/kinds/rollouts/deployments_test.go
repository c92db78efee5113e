package rollouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// TestScenario1BatchesOfADeployment: three steps with approvals, in which no budget is exceeded at any moment. Then the spec is what was
// applied, and nothing is left on any object.
func TestScenario1BatchesOfADeployment(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string][2]string{
		"a quarter": {"25%", "25%"}, "surge alone": {"1", "0"}, "no surge": {"0", "1"}, "half": {"50%", "50%"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newDeploymentEnv(t, 10, budget, steps("1", "50%", "100%"))
			before := e.deployment()
			w := e.watch("v2", 1)
			e.setImage("v2")
			e.paused(1, "v2", 1)
			if next := e.rollout().Status.CanaryStatus.NextStepIndex; next != 2 {
				t.Errorf("the next step is %d, want 2", next)
			}
			ours := replicasets.New(e.deployment(), e.sets())
			e.Eventually("the status of the Deployment says so", func() error {
				if s := e.deployment().Status; s.UpdatedReplicas != 1 {
					return fmt.Errorf("%d Pods are updated, want 1", s.UpdatedReplicas)
				}
				return nil
			})
			w.allow(5)
			e.approve()
			e.paused(2, "v2", 5)
			w.allow(10)
			e.approve()
			e.over("v2", 10, corev1.ConditionTrue)
			w.verdict()
			after := e.deployment()
			before.Spec.Template.Spec.Containers[0].Image = "web:v2"
			if diff := cmp.Diff(before.Spec, after.Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
			}
			if is := replicasets.New(after, e.sets()); is.Name != ours.Name {
				t.Errorf("the native controller goes on with %s, we began with %s", is.Name, ours.Name)
			}
		})
	}
}

// TestScenario2CapBelowAll: a percentage below 100% leaves one old Pod.
func TestScenario2CapBelowAll(t *testing.T) {
	e := newDeploymentEnv(t, 3, [2]string{"25%", "25%"}, steps("90%", "100%"))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	e.approve()
	e.over("v2", 3, corev1.ConditionTrue)
}

// TestScenario8RollbackOfADeployment: the old template brings all Pods back, also while the release is paused.
func TestScenario8RollbackOfADeployment(t *testing.T) {
	e := newDeploymentEnv(t, 6, [2]string{"25%", "25%"}, steps("1", "50%", "100%"))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.paused(2, "v2", 3)
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = true })
	e.setImage("v1")
	e.over("v1", 6, corev1.ConditionFalse)
}

// TestScenario10ContinuousReleaseOfADeployment: a third version begins with the first step. Pods of the second one go before those of the
// first, which stays the stable one.
func TestScenario10ContinuousReleaseOfADeployment(t *testing.T) {
	e := newDeploymentEnv(t, 10, [2]string{"0", "2"}, steps("1", "50%", "100%"))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	stable := e.rollout().Status.CanaryStatus.StableRevision
	e.approve()
	e.paused(2, "v2", 5)
	e.setImage("v3")
	e.paused(1, "v3", 1)
	if got := e.rollout().Status.CanaryStatus.StableRevision; got != stable {
		t.Errorf("stable revision %s, want %s", got, stable)
	}
	e.approve()
	e.paused(2, "v3", 5)
	if got := e.images(); got["v2"] != 0 {
		t.Errorf("%v: Pods of the stable version went before those of the one between", got)
	}
	e.approve()
	e.over("v3", 10, corev1.ConditionTrue)
}

// TestScenario14AHostileWriter: a tool writes the manifest back every 200 ms, of which paused is no part, or is false. The batches are kept
// to all the same, and follow when the Deployment is scaled. Disabling or deleting the Rollout ends the release natively: the Deployment is
// not paused, and its strategy is the user's.
func TestScenario14AHostileWriter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write func(*deploymentEnv) error
		end   func(*deploymentEnv)
	}{
		"replaces it, and the Rollout is disabled": {(*deploymentEnv).replace, (*deploymentEnv).disable},
		"replaces it, and the Rollout is deleted":  {(*deploymentEnv).replace, (*deploymentEnv).remove},
		"unpauses it, and the Rollout is disabled": {(*deploymentEnv).merge, (*deploymentEnv).disable},
		"unpauses it, and the Rollout is deleted":  {(*deploymentEnv).merge, (*deploymentEnv).remove},
	} {
		t.Run(name, func(t *testing.T) {
			e := newDeploymentEnv(t, 5, [2]string{"25%", "25%"}, steps("20%", "60%", "100%"))
			w := e.watch("v2", 1)
			e.setImage("v2")
			end := e.writing(func() error { return tc.write(e) })
			defer end()
			e.paused(1, "v2", 1)
			w.allow(3)
			e.approve()
			e.paused(2, "v2", 3)
			e.Never("a Pod more is updated", func() bool { return e.images()["v2"] > 3 })
			w.verdict()
			tc.end(e)
			e.Eventually("it is rolled out natively", func() error { return e.complete("v2", 5) })
			end()
			e.Eventually("nothing is left, and it stays so", func() error { return e.complete("v2", 5) })
			e.clean()
		})
	}
}

// TestScenario15ADeploymentKilledAtEachState: a manager that is killed goes on where it was, with the same ReplicaSets.
func TestScenario15ADeploymentKilledAtEachState(t *testing.T) {
	e := &deploymentEnv{env: newRestartEnv(t)}
	e.begin(6, [2]string{"1", "0"}, steps("1", "50%", "100%"))
	w := e.watch("v2", 1)
	e.setImage("v2")
	e.restart()
	e.paused(1, "v2", 1)
	w.allow(3)
	e.approve()
	e.Eventually("the batch has begun", func() error {
		if got := e.images()["v2"]; got < 2 {
			return fmt.Errorf("%d Pods are updated", got)
		}
		return nil
	})
	e.restart()
	e.paused(2, "v2", 3)
	w.allow(6)
	e.approve()
	e.restart()
	e.over("v2", 6, corev1.ConditionTrue)
	w.verdict()
	if got := len(e.sets()); got != 2 {
		t.Errorf("there are %d ReplicaSets, want 2", got)
	}
}

// TestADeploymentIsScaledInABatch: a percentage follows the number of replicas, a number stays.
func TestADeploymentIsScaledInABatch(t *testing.T) {
	e := newDeploymentEnv(t, 10, [2]string{"25%", "25%"}, steps("30%", "100%"))
	e.setImage("v2")
	e.paused(1, "v2", 3)
	edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) { *d.Spec.Replicas = 20 })
	e.paused(1, "v2", 6)
}

// TestANameThatIsTaken by a ReplicaSet of somebody else makes a release count a collision, as the native controller does, and go on.
func TestANameThatIsTaken(t *testing.T) {
	e := newDeploymentEnv(t, 4, [2]string{"25%", "25%"}, steps("1", "100%"))
	d := e.deployment()
	d.Spec.Template.Spec.Containers[0].Image = "web:v2"
	taken := replicasets.Make(d, e.sets(), replicasets.Limits{}).Name
	e.Make(strings.Replace(fmt.Sprintf(held, 0), "name: held,", "name: "+taken+",", 1))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	d = e.deployment()
	if rs := replicasets.New(d, e.sets()); d.Status.CollisionCount == nil || rs == nil || rs.Name == taken {
		t.Errorf("collisions %v, ReplicaSet %+v", d.Status.CollisionCount, rs)
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
}

// TestTheNativeControllerGoesOnFromAnyBatch: if nothing of Rollouts is there any more, kubectl rollout resume is all that is needed, and the
// native controller goes on with the same ReplicaSets within the budget.
func TestTheNativeControllerGoesOnFromAnyBatch(t *testing.T) {
	e := newDeploymentEnv(t, 10, [2]string{"25%", "25%"}, "")
	e.annotate("v2", `{"rollingStyle":"Partition","partition":"50%"}`)
	e.Eventually("half of it is updated", func() error { return e.ready("v2", 5) })
	ours := replicasets.New(e.deployment(), e.sets())
	w := e.watch("v2", 10)
	edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Paused = false })
	e.Eventually("it is rolled out", func() error { return e.complete("v2", 10) })
	w.verdict()
	if is := replicasets.New(e.deployment(), e.sets()); is.Name != ours.Name {
		t.Errorf("the native controller goes on with %s, we began with %s", is.Name, ours.Name)
	}
}

// TestARecreateOfTheOriginalIsUndone: a release that the original began gets its strategy back before anything else, trap T1.
func TestARecreateOfTheOriginalIsUndone(t *testing.T) {
	e := newDeploymentEnv(t, 4, [2]string{"25%", "25%"}, "")
	edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.Paused = true
	})
	e.annotate("v2", `{"rollingStyle":"Partition","rollingUpdate":{"maxSurge":1,"maxUnavailable":0},"partition":2}`)
	e.Eventually("the batch is done, with the strategy of the user", func() error {
		s := e.deployment().Spec.Strategy
		if s.Type != appsv1.RollingUpdateDeploymentStrategyType || s.RollingUpdate.MaxSurge.IntValue() != 1 {
			return fmt.Errorf("the strategy is %+v", s)
		}
		return e.ready("v2", 2)
	})
}

// TestAHeldReplicaSetKeepsItsSize: the API server refuses to scale it, until the annotation is removed.
func TestAHeldReplicaSetKeepsItsSize(t *testing.T) {
	e := newEnv(t)
	e.holds()
	rs := e.Make(fmt.Sprintf(held, 1))
	scale := func(body string) error {
		return e.Patch(e.Ctx, rs, client.RawPatch("application/merge-patch+json", []byte(body)))
	}
	if err := scale(`{"spec":{"replicas":2}}`); !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "keeps it at 1") {
		t.Errorf("it is scaled: %v", err)
	}
	if err := scale(`{"spec":{"replicas":2},"metadata":{"annotations":{"rollouts.kruise.io/held-replicas":"2"}}}`); err != nil {
		t.Errorf("its size and annotation can't be changed together: %v", err)
	}
	if err := scale(`{"metadata":{"annotations":{"rollouts.kruise.io/held-replicas":null}}}`); err != nil {
		t.Errorf("the annotation can't be removed: %v", err)
	}
	if err := scale(`{"spec":{"replicas":0}}`); err != nil {
		t.Errorf("without the annotation it can't be scaled: %v", err)
	}
}

// TestARolloutThatIsForcedAway: somebody removes the finalizer and deletes the Rollout while no manager is there. One that starts ends the
// release: a Deployment is not left paused.
func TestARolloutThatIsForcedAway(t *testing.T) {
	e := &deploymentEnv{env: newRestartEnv(t)}
	e.begin(5, [2]string{"25%", "25%"}, steps("2", "100%"))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	e.Site.RolloutManager.Kill()
	_, err := e.Kubectl(e.Ctx, "patch", "validatingwebhookconfiguration", "kruise-rollout-validating-webhook-configuration", "--type=json",
		"-p", `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
	e.Must(err)
	e.Eventually("the Rollout can be forced away", func() error {
		r := e.rollout()
		return e.Patch(e.Ctx, r, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	e.Must(e.Delete(e.Ctx, e.rollout()))
	e.Must(e.Site.RelaunchRollouts(e.Afterwards()))
	e.Eventually("it is rolled out natively", func() error { return e.complete("v2", 5) })
	e.clean()
	e.Eventually("its changes are no longer sent to the webhook", func() error {
		if e.deployment().Labels[keys.WorkloadType] != "" {
			return errors.New("it has the label")
		}
		return nil
	})
}

// manifest returns the Deployment as a tool has it in its repository.
func (e *deploymentEnv) manifest(image string) string {
	return strings.ReplaceAll(e.applied, "web:v1", "web:"+image)
}

// replace writes the whole object, as a tool does that knows nothing of what others have added.
func (e *deploymentEnv) replace() error {
	o := e.Manifest(e.manifest("v2"))
	d := &appsv1.Deployment{}
	if err := e.Get(e.Ctx, client.ObjectKeyFromObject(o), d); err != nil {
		return err
	}
	o.SetResourceVersion(d.ResourceVersion)
	return e.Update(e.Ctx, o)
}

// merge writes the fields of the manifest, of which paused is one.
func (e *deploymentEnv) merge() error {
	o := e.Manifest(e.manifest("v2"))
	o.Object["spec"].(map[string]any)["paused"] = false
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	return e.Patch(e.Ctx, o, client.RawPatch("application/merge-patch+json", text))
}

func (e *deploymentEnv) disable() {
	e.Helper()
	e.change(func(r *v1beta1.Rollout) { r.Spec.Disabled = true })
	e.Eventually("the Rollout is disabled", func() error {
		if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseDisabled {
			return fmt.Errorf("phase %s", phase)
		}
		return nil
	})
}

func (e *deploymentEnv) remove() {
	e.Helper()
	e.Must(e.Delete(e.Ctx, e.rollout()))
	e.Eventually("the Rollout is gone", func() error {
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "demo"}, &v1beta1.Rollout{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// annotate is what a webhook and the controller of BatchReleases write, of a Deployment without a Rollout.
func (e *deploymentEnv) annotate(version, strategy string) {
	e.Helper()
	edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Paused, d.Spec.Template.Spec.Containers[0].Image = true, "web:"+version
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		d.Labels[keys.AdvancedDeployment] = "true"
		d.Annotations[keys.DeploymentStrategy] = strategy
	})
}

// complete complains unless the Deployment is rolled out natively, within what its user wrote.
func (e *deploymentEnv) complete(version string, n int32) error {
	d := e.deployment()
	s := d.Status
	switch {
	case d.Spec.Paused || d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return fmt.Errorf("paused %v, strategy %s", d.Spec.Paused, d.Spec.Strategy.Type)
	case s.ObservedGeneration != d.Generation || s.UpdatedReplicas != n || s.Replicas != n || s.AvailableReplicas != n:
		return fmt.Errorf("status %+v", s)
	}
	for _, rs := range e.sets() {
		if text, is := rs.Annotations[keys.HeldReplicas]; is {
			return fmt.Errorf("%s is held at %s", rs.Name, text)
		}
	}
	return e.ready(version, int(n))
}
