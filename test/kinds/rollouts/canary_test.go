package rollouts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// canaryOf returns the manifest of a Rollout of a Deployment in canary style, with steps as YAML, and how it leads traffic if it does.
func canaryOf(steps, routings string) string {
	out := strings.Replace(rolloutOf(ofDeployment, steps), "    canary:\n", "    canary:\n      enableExtraWorkloadForCanary: true\n", 1)
	if routings != "" {
		out += "      trafficRoutings: [" + routings + "]\n"
	}
	return out
}

const (
	byIngress = "{service: web, gracePeriodSeconds: 1, ingress: {name: web}}"
	byRoute   = "{service: web, gracePeriodSeconds: 1, gateway: {httpRouteName: web}}"
)

// canaryEnv is a namespace with a Deployment that is released in canary style.
type canaryEnv struct{ *deploymentEnv }

func newCanaryEnv(t *testing.T, replicas int32, steps, routings string) *canaryEnv {
	t.Helper()
	return beginCanary(newEnv(t), replicas, steps, routings)
}

func beginCanary(in *env, replicas int32, steps, routings string) *canaryEnv {
	in.Helper()
	e := &canaryEnv{&deploymentEnv{env: in}}
	if routings != "" {
		e.Make(service)
	}
	switch routings {
	case byIngress:
		e.Make(webIngress)
	case byRoute:
		e.routes()
		e.Make(threeRules)
	}
	e.beginWith(replicas, [2]string{"1", "0"}, canaryOf(steps, routings))
	return e
}

// seconds returns the second Deployments.
func (e *canaryEnv) seconds() []appsv1.Deployment {
	e.Helper()
	var list appsv1.DeploymentList
	e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace), client.HasLabels{keys.CanaryDeployment}))
	return list.Items
}

// stands checks that a step stands: one second Deployment with so many Pods of a version, and all Pods of the Deployment itself still of
// the stable one.
func (e *canaryEnv) stands(version string, second int32, stable string, first int) {
	e.Helper()
	all := e.seconds()
	if len(all) != 1 || *all[0].Spec.Replicas != second || !metav1.IsControlledBy(&all[0], e.batchRelease()) {
		e.Fatalf("second Deployments %+v, want one of %d Pods", all, second)
	}
	if got := e.images(); got[version] != int(second) || got[stable] != first {
		e.Fatalf("%v, want %d of %s and %d of %s", got, second, version, first, stable)
	}
	if d := e.deployment(); !d.Spec.Paused || *d.Spec.Replicas != int32(first) {
		e.Errorf("the Deployment: paused %v, replicas %d", d.Spec.Paused, *d.Spec.Replicas)
	}
}

func (e *canaryEnv) batchRelease() *v1beta1.BatchRelease {
	e.Helper()
	b := &v1beta1.BatchRelease{}
	e.Read("demo", b)
	return b
}

// ends waits until a release is over, and has left nothing, also no second Deployment.
func (e *canaryEnv) ends(version string, pods int32, succeeded corev1.ConditionStatus) {
	e.Helper()
	e.over(version, pods, succeeded)
	e.noSecond()
}

func (e *canaryEnv) noSecond() {
	e.Helper()
	e.Eventually("the second Deployment is gone", func() error {
		if all := e.seconds(); len(all) > 0 {
			return fmt.Errorf("%d are there", len(all))
		}
		return nil
	})
}

// TestScenario6CanaryOfADeployment: a second Deployment has a fifth of the Pods and of the requests, beside all of the first one. Its Pods
// can be told apart, trap T9. Then the first one is rolled out, and everything else is as before.
func TestScenario6CanaryOfADeployment(t *testing.T) {
	e := newCanaryEnv(t, 10, "{replicas: 20%, traffic: 20%}", byIngress)
	before := e.deployment()
	e.setImage("v2")
	e.paused(1, "v2", 2)
	e.stands("v2", 2, "v1", 10)
	for name, version := range map[string]string{"web": "v1", "web-canary": "v2"} {
		if got, want := e.selected(name), e.ofVersion(version); cmp.Diff(want, got) != "" {
			t.Errorf("Service %s selects other Pods than those of %s (-want +got):\n%s", name, version, cmp.Diff(want, got))
		}
	}
	canary := &networkingv1.Ingress{}
	e.Read("web-canary", canary)
	if got := canary.Annotations[nginx+"canary-weight"]; got != "20" {
		t.Errorf("the weight is %q", got)
	}
	for _, p := range e.Pods() {
		if isNew := strings.HasSuffix(p.Spec.Containers[0].Image, ":v2"); (p.Labels[keys.CanaryDeployment] == "web") != isNew {
			t.Errorf("Pod %s of %s has labels %v", p.Name, p.Spec.Containers[0].Image, p.Labels)
		}
	}
	e.approve()
	e.ends("v2", 10, corev1.ConditionTrue)
	e.untouched()
	before.Spec.Template.Spec.Containers[0].Image = "web:v2"
	if diff := cmp.Diff(before.Spec, e.deployment().Spec, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
	}
}

// TestScenario8RollbackOfACanary: traffic goes back before the second Deployment goes, also while the release is paused. The Pods of the
// first one were never touched.
func TestScenario8RollbackOfACanary(t *testing.T) {
	e := newCanaryEnv(t, 4, "{replicas: 1, traffic: 20%}, {replicas: 50%, traffic: 50%}, {replicas: 100%}", byRoute)
	before := e.ofVersion("v1")
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.paused(2, "v2", 2)
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = true })
	e.setImage("v1")
	e.Eventually("the route leads to the old version, or the second Deployment serves", func() error {
		if leads := fmt.Sprint(backends(e.untyped(httpRoute, "web"), 0)); strings.Contains(leads, "web-canary") {
			if len(e.seconds()) == 0 {
				t.Error("the second Deployment is gone, and the route leads to it")
			}
			return errors.New(leads)
		}
		return nil
	})
	e.ends("v1", 4, corev1.ConditionFalse)
	if diff := cmp.Diff(before, e.ofVersion("v1")); diff != "" {
		t.Errorf("Pods of the Deployment were replaced (-want +got):\n%s", diff)
	}
}

// TestScenario10ThirdTemplateInACanary: a third version begins with the first step, from the first one. There is one second Deployment.
func TestScenario10ThirdTemplateInACanary(t *testing.T) {
	e := newCanaryEnv(t, 4, steps("1", "50%", "100%"), "")
	e.setImage("v2")
	e.paused(1, "v2", 1)
	stable := e.rollout().Status.CanaryStatus.StableRevision
	e.approve()
	e.paused(2, "v2", 2)
	e.setImage("v3")
	e.paused(1, "v3", 1)
	e.Eventually("the second version is gone", e.updated("v2", 0))
	e.stands("v3", 1, "v1", 4)
	if got := e.rollout().Status.CanaryStatus.StableRevision; got != stable {
		t.Errorf("stable revision %s, want %s", got, stable)
	}
	e.approve()
	e.paused(2, "v3", 2)
	e.approve()
	e.ends("v3", 4, corev1.ConditionTrue)
}

// TestScaleOfACanary: a percentage follows when the Deployment is scaled up; what the second one has is not taken back.
func TestScaleOfACanary(t *testing.T) {
	e := newCanaryEnv(t, 4, steps("50%", "100%"), "")
	e.setImage("v2")
	e.paused(1, "v2", 2)
	scale := func(replicas int32) {
		edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	}
	scale(8)
	e.paused(1, "v2", 4)
	e.Eventually("the Deployment has its Pods, all old ones", e.updated("v1", 8))
	scale(2)
	e.Eventually("the Deployment has its Pods", e.updated("v1", 2))
	e.stands("v2", 4, "v1", 2)
	e.approve()
	e.ends("v2", 2, corev1.ConditionTrue)
}

// TestScenario14HostileWriterOfACanary: a tool writes the manifest back all the time. No Pod of the Deployment itself is replaced before the
// end, which a disabled or deleted Rollout brings about natively.
func TestScenario14HostileWriterOfACanary(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write func(*deploymentEnv) error
		end   func(*deploymentEnv)
	}{
		"replaces it, and the Rollout is disabled": {(*deploymentEnv).replace, (*deploymentEnv).disable},
		"unpauses it, and the Rollout is deleted":  {(*deploymentEnv).merge, (*deploymentEnv).remove},
	} {
		t.Run(name, func(t *testing.T) {
			e := newCanaryEnv(t, 5, "{replicas: 20%, traffic: 20%}, {replicas: 60%, traffic: 50%}, {replicas: 100%}", byIngress)
			e.setImage("v2")
			end := e.writing(func() error { return tc.write(e.deploymentEnv) })
			defer end()
			e.paused(1, "v2", 1)
			e.approve()
			e.paused(2, "v2", 3)
			e.stands("v2", 3, "v1", 5)
			tc.end(e.deploymentEnv)
			e.Eventually("it is rolled out natively", func() error { return e.complete("v2", 5) })
			end()
			e.Eventually("nothing is left, and it stays so", func() error { return e.complete("v2", 5) })
			e.clean()
			e.noSecond()
			e.untouched()
		})
	}
}

// TestScenario15ACanaryKilledAtEachState: a manager that is killed goes on where it was, with the same second Deployment.
func TestScenario15ACanaryKilledAtEachState(t *testing.T) {
	e := beginCanary(newRestartEnv(t), 5, "{replicas: 20%, traffic: 20%}, {replicas: 100%}", byIngress)
	e.setImage("v2")
	for _, state := range []v1beta1.StepState{v1beta1.StepStateBeforeUpgrade, v1beta1.StepStateUpgrade, v1beta1.StepStateTrafficRouting} {
		e.Eventually("the step has come to "+string(state), func() error {
			if c := e.rollout().Status.CanaryStatus; c == nil || c.CurrentStepIndex != 1 || order(c.CurrentStepState) < order(state) {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
		e.restart()
	}
	e.paused(1, "v2", 1)
	name := e.seconds()[0].Name
	e.restart()
	e.paused(1, "v2", 1)
	e.stands("v2", 1, "v1", 5)
	if got := e.seconds()[0].Name; got != name {
		t.Errorf("the second Deployment is %s, and was %s", got, name)
	}
	e.approve()
	e.restart()
	e.ends("v2", 5, corev1.ConditionTrue)
	e.untouched()
}

// order returns where a state is among those of a step.
func order(state v1beta1.StepState) int {
	for i, s := range []v1beta1.StepState{
		v1beta1.StepStateBeforeUpgrade, v1beta1.StepStateUpgrade, v1beta1.StepStateTrafficRouting, v1beta1.StepStateMetricsAnalysis,
		v1beta1.StepStatePaused, v1beta1.StepStateReady,
	} {
		if s == state {
			return i
		}
	}
	return 0
}

// TestScenario17RouteOfACanary: of a route with several rules only the one that leads to the Service changes, and comes back as it was.
func TestScenario17RouteOfACanary(t *testing.T) {
	e := newCanaryEnv(t, 5, "{replicas: 20%, traffic: 20%}, {replicas: 100%}", byRoute)
	before := e.untyped(httpRoute, "web").Object["spec"]
	e.setImage("v2")
	e.paused(1, "v2", 1)
	split := e.untyped(httpRoute, "web")
	if diff := cmp.Diff([]string{"web 560", "web-canary 140", "other 300"}, backends(split, 0)); diff != "" {
		t.Errorf("the backends (-want +got):\n%s", diff)
	}
	was, _, _ := unstructured.NestedSlice(map[string]any{"spec": before}, "spec", "rules")
	is, _, _ := unstructured.NestedSlice(split.Object, "spec", "rules")
	if diff := cmp.Diff(was[1:], is[1:]); diff != "" {
		t.Errorf("the other rules (-want +got):\n%s", diff)
	}
	e.approve()
	e.ends("v2", 5, corev1.ConditionTrue)
	if diff := cmp.Diff(before, e.untyped(httpRoute, "web").Object["spec"]); diff != "" {
		t.Errorf("the route is not as it was (-want +got):\n%s", diff)
	}
}

// TestACanaryWhoseDeploymentGoes: what the release has made goes, too, and the Service selects what it did; rule R62.
func TestACanaryWhoseDeploymentGoes(t *testing.T) {
	e := newCanaryEnv(t, 3, "{replicas: 1, traffic: 20%}, {replicas: 100%}", byIngress)
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.Must(e.Delete(e.Ctx, e.deployment()))
	e.Eventually("the Rollout waits for another one", func() error {
		if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseInitial {
			return fmt.Errorf("phase %s", phase)
		}
		return nil
	})
	e.noSecond()
	e.untouched()
}

// TestACanaryOfWhichEverythingIsGone: a Rollout can be deleted also if its workload, Service and Ingress went before, trap T21.
func TestACanaryOfWhichEverythingIsGone(t *testing.T) {
	e := newCanaryEnv(t, 3, "{replicas: 1, traffic: 20%}, {replicas: 100%}", byIngress)
	e.setImage("v2")
	e.paused(1, "v2", 1)
	for _, o := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.Ingress{}} {
		e.Read("web", o)
		e.Must(e.Delete(e.Ctx, o))
	}
	e.remove()
	e.noSecond()
}

// TestASecondDeploymentThatSomebodyDeletes comes back.
func TestASecondDeploymentThatSomebodyDeletes(t *testing.T) {
	e := newCanaryEnv(t, 3, steps("1", "100%"), "")
	e.setImage("v2")
	e.paused(1, "v2", 1)
	first := e.seconds()[0]
	e.Must(e.Delete(e.Ctx, &first))
	e.Eventually("there is another one", func() error {
		if all := e.seconds(); len(all) != 1 || all[0].UID == first.UID {
			return fmt.Errorf("%d are there", len(all))
		}
		return e.ready("v2", 1)
	})
	e.confirm(1)
	e.ends("v2", 3, corev1.ConditionTrue)
}

// TestACanaryThatIsKeptFrozen: with the gate, a Rollout that is deleted leaves its Deployment paused with its old Pods, trap T12.
func TestACanaryThatIsKeptFrozen(t *testing.T) {
	takePlace(t)
	e := &canaryEnv{&deploymentEnv{env: enter(t, alone)}}
	e.beginWith(3, [2]string{"1", "0"}, canaryOf(steps("1", "100%"), ""))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.remove()
	e.noSecond()
	e.clean()
	if d := e.deployment(); !d.Spec.Paused {
		t.Error("it goes on by itself")
	}
	e.Eventually("all of its Pods are old", func() error { return e.ready("v1", 3) })
}

// TestWhoMayHaveASecondDeploymentMade: without the right to create Deployments nobody has a Rollout do it.
func TestWhoMayHaveASecondDeploymentMade(t *testing.T) {
	e := newEnv(t)
	author := e.author()
	err := author.Create(e.Ctx, e.Manifest(canaryOf(steps("1"), "")))
	if !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "may not create deployments") {
		t.Errorf("a Rollout of canary style: %v", err)
	}
	e.Must(author.Create(e.Ctx, e.Manifest(rolloutOf(ofDeployment, steps("1")))))
	err = author.Patch(e.Ctx, e.rollout(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"strategy":{"canary":{"enableExtraWorkloadForCanary":true}}}}`)))
	if !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "may not create deployments") {
		t.Errorf("a Rollout that gets canary style: %v", err)
	}
}
