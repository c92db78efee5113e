package cli

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

const steps = `
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: demo}
spec:
  workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  strategy:
    canary:
      steps: [{replicas: 1}, {replicas: 2}, {replicas: "100%"}]
`

// released makes a CloneSet and its Rollout, and returns when both are at rest.
func (e *env) released() {
	e.Helper()
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 3"))
	e.Make(steps)
	e.eventually(0, "no release is under way", "status", "rollout/demo", "--watch=false")
	e.done("clone/web")
}

// TestRollout approves a release to its end.
func TestRollout(t *testing.T) {
	e := newEnv(t)
	e.released()
	e.ends(1, "has no release under way", "approve", "demo")
	e.ok("main=web:v2", "set", "image", "rollout/demo", "main=web:v2") // that of its workload
	e.ends(2, "step 1/3", "status", "clone/web", "--timeout", "2m")    // by its Rollout
	e.ends(1, "and not yet at step 2", "approve", "demo", "--step", "2")
	e.ends(1, "is released by rollout/demo: pause that", "pause", "clone/web")
	e.ok("rollout/demo step 1/3 approved", "approve", "demo")
	e.ok("step 1 is approved already", "approve", "demo", "--step", "1")
	e.eventually(2, "step 2/3", "status", "rollout", "demo", "--timeout", "1m")
	e.ends(1, "is not stopped", "retry", "demo")
	e.ok("rollout/demo paused", "rollout", "pause", "rollout/demo")
	e.eventually(2, "the Rollout is paused", "status", "rollout/demo", "--watch=false")
	e.ok("rollout/demo resumed", "resume", "rollout/demo")
	e.eventually(2, "approve the step", "status", "rollout/demo", "--watch=false")
	e.ok("step 2/3 approved", "rollout", "approve", "rollout/demo")
	e.eventually(0, "the last release succeeded", "status", "rollout/demo", "--timeout", "2m")
	e.allRun("web:v2", 3)
}

// TestAbort goes back in the middle of a release.
func TestAbort(t *testing.T) {
	e := newEnv(t)
	e.released()
	e.ok("image updated", "set", "image", "clone/web", "main=web:v2")
	e.ends(2, "step 1/3", "status", "rollout/demo", "--timeout", "2m", "--watch")
	e.ok("- web:v2", "abort", "demo", "--dry-run")
	e.ok("rolled back to revision 1", "abort", "demo", "-y")
	e.eventually(1, "did not succeed", "status", "rollout/demo", "--timeout", "2m")
	e.allRun("web:v1", 3)
}

// TestUndoOfAPausedDeployment: a Deployment is paused while it is released in steps, which does not keep it from being rolled back, trap T20.
func TestUndoOfAPausedDeployment(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps/v1", "Deployment", "replicas: 3"))
	e.Make(strings.Replace(steps, "apiVersion: apps.kruise.io/v1beta1, kind: CloneSet", "apiVersion: apps/v1, kind: Deployment", 1))
	e.eventually(0, "no release is under way", "status", "rollout/demo", "--watch=false")
	e.done("deployment/web")
	e.ok("image updated", "set", "image", "deployment/web", "main=web:v2")
	e.ends(2, "step 1/3", "status", "rollout/demo", "--timeout", "2m", "--watch")
	d := &appsv1.Deployment{}
	e.Read("web", d)
	if !d.Spec.Paused {
		t.Error("the Deployment is not paused")
	}
	e.ok("rolled back to revision 1", "undo", "deployment/web", "-y")
	e.eventually(1, "did not succeed", "status", "rollout/demo", "--timeout", "2m")
	e.allRun("web:v1", 3)
}

// TestRetry runs the step of a release anew that is past its deadline.
func TestRetry(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 3"))
	e.Make(strings.Replace(steps, "strategy:", "strategy:\n    progressDeadlineSeconds: 3\n    guard: {onFailure: None}", 1))
	e.eventually(0, "no release is under way", "status", "rollout/demo", "--watch=false")
	e.done("clone/web")
	e.ok("image updated", "set", "image", "clone/web", "main=web:fail-pull")
	e.eventually(1, "has taken longer than 3s", "status", "rollout/demo", "--timeout", "2m")
	e.cause("WaitImagePull", "rollout/demo")
	e.cause("WaitImagePull", "clone/web")
	e.ok("step 1/3 runs anew", "retry", "rollout/demo")
	e.Eventually("the step runs anew", func() error {
		r := &v1beta1.Rollout{}
		e.Read("demo", r)
		if r.Status.CanaryStatus.NextStepIndex != 2 {
			return errors.New("the status still asks for the step")
		}
		return nil
	})
}
