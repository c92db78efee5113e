package rollouts

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestScenario8DirectRollback: the old template brings the workload back in one go.
func TestScenario8DirectRollback(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.paused(2, "v2", 5)
	e.setImage("v1")
	e.over("v1", 10, corev1.ConditionFalse)
}

// TestScenario9RollbackWhilePaused: a paused release can be rolled back.
func TestScenario9RollbackWhilePaused(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 4, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = true })
	e.Eventually("the release is paused", func() error {
		if c := condition(e.rollout(), v1beta1.ConditionProgressing); c == nil || c.Reason != v1beta1.ReasonPaused {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	e.setImage("v1")
	e.over("v1", 4, corev1.ConditionFalse)
	if !e.rollout().Spec.Strategy.Paused {
		t.Error("the pause was taken back")
	}
}

// TestScenario10ContinuousRelease: a third version begins with the first step, and the first version stays the stable one.
func TestScenario10ContinuousRelease(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
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
	e.approve()
	e.over("v3", 10, corev1.ConditionTrue)
}

// TestScenario11Jump: a step index that a user writes is obeyed once; what is no step is corrected.
func TestScenario11Jump(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("1", "2", "4", "8")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.paused(2, "v2", 2)
	e.setStatus(func(c *v1beta1.CanaryStatus) { c.NextStepIndex = 9 })
	e.Eventually("9 is corrected", func() error {
		if c := e.rollout().Status.CanaryStatus; c.NextStepIndex != 3 {
			return fmt.Errorf("next step %d", c.NextStepIndex)
		}
		return nil
	})
	e.paused(2, "v2", 2)
	e.setStatus(func(c *v1beta1.CanaryStatus) { c.NextStepIndex = 4 })
	e.paused(4, "v2", 8)
	e.setStatus(func(c *v1beta1.CanaryStatus) { c.NextStepIndex = 1 })
	e.paused(1, "v2", 8) // what is updated stays
}

// TestScenario12PlanEdit: no change of the steps stands for an approval, and their number stays.
func TestScenario12PlanEdit(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("20%", "50%", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	ten, forty := intstr.FromString("10%"), intstr.FromString("40%")
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps[0].Replicas = &ten })
	e.Never("a step is left without an approval, trap T5", func() bool { return e.rollout().Status.CurrentStepIndex != 1 })
	e.paused(1, "v2", 2)
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps[0].Replicas = &forty })
	e.paused(1, "v2", 4)
	err := scene.TryEdit(e.Env, "demo", &v1beta1.Rollout{}, func(r *v1beta1.Rollout) {
		r.Spec.Strategy.Canary.Steps = r.Spec.Strategy.Canary.Steps[:2]
	})
	if !apierrors.IsInvalid(err) || !strings.Contains(fmt.Sprint(err), "number of steps") {
		t.Errorf("a step is removed: %v", err)
	}
}

// TestTwoApprovalsSkipNothing: a second click comes too early for the next step, trap T19. That one can't be ready before its Pod's gate is
// opened, so the click is too early whenever it comes.
func TestTwoApprovalsSkipNothing(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 6, ""), unguarded(rolloutOf(ofCloneSet, steps("1", "2", "100%"))))
	e.gated("v2", "100%")
	e.Eventually("a Pod of step 1 is updated", e.updated("v2", 1))
	e.open(1)
	e.paused(1, "v2", 1)
	approve := []byte(`{"status":{"canaryStatus":{"currentStepState":"StepReady"}}}`)
	for range 2 {
		e.Must(e.Status().Patch(e.Ctx, e.rollout(), client.RawPatch("application/merge-patch+json", approve)))
		time.Sleep(20 * time.Millisecond)
	}
	e.Eventually("a Pod of step 2 is updated", e.updated("v2", 2))
	e.Never("step 2 is skipped", func() bool { return e.rollout().Status.CurrentStepIndex > 2 })
	e.open(1)
	e.paused(2, "v2", 2)
}

// TestScenario14DisableAndDelete: disabling and deleting end the release, and leave nothing frozen.
func TestScenario14DisableAndDelete(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*env){
		"disabled": func(e *env) {
			e.change(func(r *v1beta1.Rollout) { r.Spec.Disabled = true })
			e.Eventually("it is disabled", func() error {
				if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseDisabled {
					return fmt.Errorf("phase %s", phase)
				}
				return nil
			})
		},
		"deleted": func(e *env) {
			e.Must(e.Delete(e.Ctx, e.rollout()))
			e.Eventually("it is gone, and the label of the workload with it", func() error {
				err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "demo"}, &v1beta1.Rollout{})
				if !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there: %w", err)
				}
				if label := e.cloneSet().Labels[keys.WorkloadType]; label != "" {
					return errors.New("the label is there")
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
			e.setImage("v2")
			e.paused(1, "v2", 1)
			end(e)
			e.Eventually("the workload goes on by itself", func() error { return e.ready("v2", 10) })
			e.clean()
		})
	}
}

// TestScenario23TwoRollouts: a second Rollout of a workload is refused, and the first one named.
func TestScenario23TwoRollouts(t *testing.T) {
	e := newEnv(t)
	e.Make(rolloutOf(ofCloneSet, steps("1", "100%")))
	second := e.Manifest(strings.Replace(rolloutOf(strings.Replace(ofCloneSet, "v1beta1", "v1alpha1", 1), steps("1")), "name: demo", "name: other", 1))
	if err := e.Create(e.Ctx, second); !apierrors.IsInvalid(err) || !strings.Contains(fmt.Sprint(err), "demo") {
		t.Errorf("a second Rollout: %v", err)
	}
}

// TestScenario25Conversion: what one version can't say survives it.
func TestScenario25Conversion(t *testing.T) {
	e := newEnv(t)
	e.Make(`
apiVersion: rollouts.kruise.io/v1alpha1
kind: Rollout
metadata: {name: older}
spec:
  objectRef: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
  strategy: {canary: {steps: [{weight: 5}, {weight: 100}]}}
`)
	older := &v1beta1.Rollout{}
	e.Read("older", older)
	var got []string
	for _, step := range older.Spec.Strategy.Canary.Steps {
		got = append(got, *step.Traffic, step.Replicas.String())
	}
	if diff := cmp.Diff([]string{"5%", "5%", "100%", "100%"}, got); diff != "" || !older.Spec.Strategy.Canary.EnableExtraWorkloadForCanary {
		t.Errorf("traffic and replicas (-want +got):\n%s", diff)
	}
	e.Make(`
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: demo}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: other}
  strategy:
    canary:
      disableGenerateCanaryService: true
      steps: [{replicas: 10%, matches: [{path: {type: Exact, value: /x}}]}, {replicas: 100%}]
      trafficRoutings: [{service: web, gateway: {httpRouteName: web}}]
`)
	_, err := e.Kubectl(e.Ctx, "-n", e.Namespace, "label", "rollouts.v1alpha1.rollouts.kruise.io", "demo", "team=a")
	e.Must(err)
	r := e.rollout()
	if c := r.Spec.Strategy.Canary; r.Labels["team"] != "a" || !c.DisableGenerateCanaryService || len(c.Steps[0].Matches) != 1 || *c.Steps[0].Matches[0].Path.Value != "/x" {
		t.Errorf("a write in v1alpha1 has lost something: %+v", c)
	}
	bad := e.Manifest(`
apiVersion: rollouts.kruise.io/v1alpha1
kind: Rollout
metadata: {name: nothing}
spec: {strategy: {canary: {steps: [{weight: 5}]}}}
`)
	if err := e.Create(e.Ctx, bad); err == nil || apierrors.IsInternalError(err) {
		t.Errorf("a Rollout without a workload: %v", err)
	}
}

// TestAStuckBatchSaysWhy: the deadline of a step names the Pods that are not ready, and why, trap T7.
func TestAStuckBatchSaysWhy(t *testing.T) {
	e := newEnv(t)
	manifest := strings.Replace(rolloutOf(ofCloneSet, steps("1", "100%")), "  strategy:", "  strategy:\n    progressDeadlineSeconds: 2", 1)
	e.start(fmt.Sprintf(cloneSet, 3, ""), manifest)
	e.setImage("fail-pull")
	e.Eventually("the deadline is said, with a Pod and its reason", func() error {
		r := e.rollout()
		c, stalled := condition(r, v1beta1.ConditionProgressing), condition(r, v1beta1.ConditionStalled)
		if c == nil || c.Reason != v1beta1.ReasonStepTimeout || stalled == nil || stalled.Status != corev1.ConditionTrue ||
			!strings.Contains(c.Message, "ImagePullBackOff") && !strings.Contains(c.Message, "ErrImagePull") {
			return fmt.Errorf("Progressing %+v, Stalled %+v", c, stalled)
		}
		return nil
	})
	e.setImage("v1")
	e.over("v1", 3, corev1.ConditionFalse)
}

// TestAReplacedManifestStaysFrozen: a tool that replaces the whole object during a release does not let the workload go on, trap T26.
func TestAReplacedManifestStaysFrozen(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("2", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	for range 5 {
		o := e.Manifest(strings.ReplaceAll(fmt.Sprintf(cloneSet, 10, ""), "web:v1", "web:v2"))
		o.SetResourceVersion(e.cloneSet().ResourceVersion)
		if err := e.Update(e.Ctx, o); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	e.Never("a Pod more is updated", func() bool { return e.images()["v2"] > 2 })
	e.paused(1, "v2", 2)
	e.approve()
	e.over("v2", 10, corev1.ConditionTrue)
}

// TestKilledAtEachStep: a manager that is killed goes on where it was.
func TestKilledAtEachStep(t *testing.T) {
	e := newRestartEnv(t)
	e.start(fmt.Sprintf(cloneSet, 6, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
	e.setImage("v2")
	e.restart()
	e.paused(1, "v2", 1)
	e.approve()
	e.restart()
	e.paused(2, "v2", 3)
	e.restart()
	e.paused(2, "v2", 3)
	e.approve()
	e.over("v2", 6, corev1.ConditionTrue)
}

// TestARestartWritesNothing: at rest, and in a pause, neither time nor a restart makes a write.
func TestARestartWritesNothing(t *testing.T) {
	e := newRestartEnv(t)
	e.start(fmt.Sprintf(cloneSet, 3, ""), rolloutOf(ofCloneSet, steps("1", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	version := func() string {
		var b v1beta1.BatchRelease
		e.Read("demo", &b)
		return e.rollout().ResourceVersion + " " + b.ResourceVersion + " " + e.cloneSet().ResourceVersion
	}
	before := e.AtRest(11*time.Second, "what is stored", version) // counts are written ten seconds after they were seen
	e.restart()
	e.Never("something is written", func() bool { return version() != before })
}
