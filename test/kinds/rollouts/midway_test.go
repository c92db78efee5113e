package rollouts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// leads checks the weights of the rule that leads to the Service. The other Service of the rule has 3 of 10 of the requests.
func (e *env) leads(stable, canary int) {
	e.Helper()
	want := []string{fmt.Sprint("web ", stable), fmt.Sprint("web-canary ", canary), "other 300"}
	if diff := cmp.Diff(want, backends(e.untyped(httpRoute, "web"), 0)); diff != "" {
		e.Errorf("the backends (-want +got):\n%s", diff)
	}
}

// TestScenario11JumpOfTraffic: a jump leads requests as its step says. A jump back takes back no Pod.
func TestScenario11JumpOfTraffic(t *testing.T) {
	t.Parallel()
	for kind, start := range workloads() {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			start(e, "{replicas: 1, traffic: 10%}, {replicas: 2, traffic: 20%}, {replicas: 4, traffic: 40%}, {replicas: 8, traffic: 80%}")
			e.setImageOf(kind, "v2")
			e.paused(1, "v2", 1)
			e.leads(630, 70)
			e.approve()
			e.paused(2, "v2", 2)
			e.setStatus(func(c *v1beta1.CanaryStatus) { c.NextStepIndex = 4 })
			e.paused(4, "v2", 8)
			e.leads(140, 560)
			e.setStatus(func(c *v1beta1.CanaryStatus) { c.NextStepIndex = 1 })
			e.paused(1, "v2", 8)
			e.leads(630, 70)
			if next := e.rollout().Status.CanaryStatus.NextStepIndex; next != 2 {
				t.Errorf("the next step is %d, want 2", next)
			}
		})
	}
}

// TestScenario12EditOfTraffic: what a step says of requests can be changed while it waits. It waits again then.
func TestScenario12EditOfTraffic(t *testing.T) {
	t.Parallel()
	for kind, start := range workloads() {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			start(e, "{replicas: 20%, traffic: 5%}, {replicas: 50%, traffic: 50%}, {replicas: 100%}")
			e.setImageOf(kind, "v2")
			e.paused(1, "v2", 2)
			e.leads(665, 35)
			e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps[0].Traffic = ptr.To("10%") })
			e.Eventually("the route follows", func() error {
				if got := backends(e.untyped(httpRoute, "web"), 0); got[1] != "web-canary 70" {
					return fmt.Errorf("the backends are %v", got)
				}
				return nil
			})
			e.paused(1, "v2", 2)
			e.leads(630, 70)
			e.Never("a step is left without an approval", func() bool { return e.rollout().Status.CurrentStepIndex != 1 })
		})
	}
}

// TestScenario22ADeploymentNotIntercepted: of a Deployment, too, what is no release or has no Rollout goes on natively.
func TestScenario22ADeploymentNotIntercepted(t *testing.T) {
	e := newDeploymentEnv(t, 2, [2]string{"25%", "25%"}, steps("1", "100%"))
	untouched := func(why string) {
		t.Helper()
		d := e.deployment()
		if _, marked := d.Annotations[keys.InProgressing]; marked || d.Spec.Paused {
			t.Errorf("%s: the Deployment is paused: %t, and has annotations %v", why, d.Spec.Paused, d.Annotations)
		}
		if phase := e.rollout().Status.Phase; phase == v1beta1.RolloutPhaseProgressing {
			t.Errorf("%s: phase %s", why, phase)
		}
	}
	change := func(change func(*appsv1.Deployment)) {
		t.Helper()
		edit(e.env, "web", &appsv1.Deployment{}, change)
	}
	change(func(d *appsv1.Deployment) { d.Labels["team"] = "a" })
	untouched("only labels are changed")
	change(func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 })
	e.setImage("v2")
	untouched("it has no Pods")
	change(func(d *appsv1.Deployment) { *d.Spec.Replicas = 2 })
	e.Eventually("it has Pods again", func() error { return e.complete("v2", 2) })
	e.disable()
	e.setImage("v3")
	untouched("the Rollout is disabled")
	e.Eventually("the change goes out", func() error { return e.complete("v3", 2) })
	untouched("the Rollout is disabled")
}
