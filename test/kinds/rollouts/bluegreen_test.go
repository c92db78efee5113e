package rollouts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// TestScenario16BlueGreen: all new Pods come up beside the old ones, then traffic moves, back and on again, then the old ones go.
func TestScenario16BlueGreen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ workload, routings string }{
		"a Deployment, by an Ingress":     {ofDeployment, byIngress},
		"a Deployment, by an HTTPRoute":   {ofDeployment, byRoute},
		"a CloneSet, by an Ingress":       {ofCloneSet, byIngress},
		"a CloneSet, without any traffic": {ofCloneSet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := beginBlueGreen(newEnv(t), tc.workload, threeShares, tc.routings)
			before := e.spec()
			e.setImage("v2")
			e.paused(1, "v2", 4)
			e.beside(4, 4)
			if tc.routings != "" {
				if pinned := e.selector("web")["pod-template-hash"]; pinned == "" {
					t.Error("the Service may select new Pods")
				}
			}
			e.leads(tc.routings, "0")
			e.approve()
			e.paused(2, "v2", 4)
			e.leads(tc.routings, "50")
			e.approve()
			e.paused(3, "v2", 4)
			e.leads(tc.routings, "100")
			e.jump(1)
			e.paused(1, "v2", 4)
			e.leads(tc.routings, "0")
			e.beside(4, 4)
			e.jump(3)
			e.paused(3, "v2", 4)
			at := e.rollout().Status.BlueGreenStatus
			if at == nil || at.UpdatedReplicas != 4 || at.UpdatedReadyReplicas != 4 || at.StableRevision == "" || at.UpdatedRevision == "" || at.PodTemplateHash == "" {
				t.Errorf("the status is %+v", at)
			}
			e.approve()
			e.ends("v2", corev1.ConditionTrue)
			if tc.routings != "" {
				e.untouched()
			}
			if diff := cmp.Diff(before, e.spec(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAThirdVersionBesideTwo: no Pod of it is made, and the message asks to roll back. That works from there.
func TestAThirdVersionBesideTwo(t *testing.T) {
	t.Parallel()
	for name, workload := range map[string]string{"a Deployment": ofDeployment, "a CloneSet": ofCloneSet} {
		t.Run(name, func(t *testing.T) {
			e := beginBlueGreen(newEnv(t), workload, threeShares, byIngress)
			before := e.spec()
			e.setImage("v2")
			e.paused(1, "v2", 4)
			e.setImage("v3")
			e.Eventually("the message asks to roll back", func() error {
				r := e.rollout()
				if stalled := condition(r, v1beta1.ConditionStalled); !strings.Contains(r.Status.Message, "roll back") || stalled == nil || stalled.Status != corev1.ConditionTrue {
					return fmt.Errorf("%q, Stalled %+v", r.Status.Message, stalled)
				}
				return nil
			})
			e.Never("a Pod of the third version is made, or another goes", func() bool {
				got := e.images()
				return got["v3"] > 0 || got["v1"] < 4 || got["v2"] < 4
			})
			e.setImage("v1")
			e.ends("v1", corev1.ConditionFalse)
			e.untouched()
			if diff := cmp.Diff(before, e.spec(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRollbackOfABlueGreenRelease: traffic goes back before any new Pod goes, and no old Pod was ever replaced.
func TestRollbackOfABlueGreenRelease(t *testing.T) {
	t.Parallel()
	for name, workload := range map[string]string{"a Deployment": ofDeployment, "a CloneSet": ofCloneSet} {
		t.Run(name, func(t *testing.T) {
			e := beginBlueGreen(newEnv(t), workload, threeShares, byRoute)
			before := e.ofVersion("v1")
			e.setImage("v2")
			e.paused(1, "v2", 4)
			e.approve()
			e.paused(2, "v2", 4)
			e.setImage("v1")
			e.Eventually("the route leads to the old version, or all new Pods serve", func() error {
				if leads := fmt.Sprint(backends(e.untyped(httpRoute, "web"), 0)); strings.Contains(leads, "web-canary") {
					if got := e.images()["v2"]; got < 4 && strings.Contains(fmt.Sprint(backends(e.untyped(httpRoute, "web"), 0)), "web-canary") {
						t.Errorf("%d new Pods are left, and the route leads to them", got)
					}
					return errors.New(leads)
				}
				return nil
			})
			e.ends("v1", corev1.ConditionFalse)
			e.untouched()
			if diff := cmp.Diff(before, e.ofVersion("v1")); diff != "" {
				t.Errorf("old Pods were replaced (-want +got):\n%s", diff)
			}
		})
	}
}

// TestABlueGreenReleaseWithAHostileWriter: a tool writes the manifest back all the time. No Pod goes before the Rollout is disabled or deleted, and
// then nothing is left.
func TestABlueGreenReleaseWithAHostileWriter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write func(*deploymentEnv) error
		end   func(*deploymentEnv)
	}{
		"replaces it, and the Rollout is disabled": {(*deploymentEnv).replace, (*deploymentEnv).disable},
		"unpauses it, and the Rollout is deleted":  {(*deploymentEnv).merge, (*deploymentEnv).remove},
	} {
		t.Run(name, func(t *testing.T) {
			in := newEnv(t)
			e := &deploymentEnv{env: in}
			e.beginWith(5, [2]string{"25%", "25%"}, blueGreenOf(ofDeployment, steps("40%", "100%"), ""))
			e.setImage("v2")
			end := e.writing(func() error { return tc.write(e) })
			defer end()
			e.paused(1, "v2", 2)
			e.approve()
			e.paused(2, "v2", 5)
			e.Never("an old Pod goes", func() bool { return e.images()["v1"] < 5 })
			tc.end(e)
			e.Eventually("it is rolled out natively", func() error { return e.complete("v2", 5) })
			end()
			e.Eventually("nothing is left, and it stays so", func() error { return e.complete("v2", 5) })
			e.clean()
			if s := e.deployment().Spec; s.MinReadySeconds != 0 || s.Strategy.RollingUpdate.MaxSurge.String() != "25%" {
				t.Errorf("the strategy is %d, %+v", s.MinReadySeconds, s.Strategy.RollingUpdate)
			}
		})
	}
}

// TestABlueGreenReleaseThatIsCutShort: a Rollout that is deleted in the middle leaves nothing, also if everything that it names has gone before.
func TestABlueGreenReleaseThatIsCutShort(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		workload string
		gone     []client.Object
	}{
		"a Deployment":                     {ofDeployment, nil},
		"a CloneSet":                       {ofCloneSet, nil},
		"a Deployment that is gone":        {ofDeployment, []client.Object{&appsv1.Deployment{}}},
		"a Deployment without all but it":  {ofDeployment, []client.Object{&corev1.Service{}, &networkingv1.Ingress{}, &autoscalingv2.HorizontalPodAutoscaler{}}},
		"a CloneSet that is gone, and all": {ofCloneSet, []client.Object{&cloneSetType{}, &corev1.Service{}, &networkingv1.Ingress{}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := beginBlueGreen(newEnv(t), tc.workload, threeShares, byIngress)
			e.setImage("v2")
			e.paused(1, "v2", 4)
			for _, o := range tc.gone {
				e.Read("web", o)
				e.Must(e.Delete(e.Ctx, o))
			}
			e.remove()
			if len(tc.gone) == 0 {
				e.Eventually("it goes on by itself", func() error { return e.ready("v2", 4) })
				e.Eventually("no old Pod is left", e.updated("v1", 0))
				e.untouched()
			}
			if len(tc.gone) < 3 || tc.workload == ofCloneSet {
				e.Eventually("the autoscaler scales it", func() error {
					if got := e.scales(); got != "web" {
						return errors.New(got)
					}
					return nil
				})
			}
		})
	}
}

// TestABlueGreenReleaseKilledAtEachStep: a manager that is killed goes on where it was.
func TestABlueGreenReleaseKilledAtEachStep(t *testing.T) {
	e := beginBlueGreen(newRestartEnv(t), ofDeployment, threeShares, byIngress)
	before := e.spec()
	e.setImage("v2")
	e.restart()
	e.paused(1, "v2", 4)
	e.restart()
	e.beside(4, 4)
	e.approve()
	e.paused(2, "v2", 4)
	e.approve()
	e.paused(3, "v2", 4)
	e.approve()
	e.restart()
	e.ends("v2", corev1.ConditionTrue)
	e.untouched()
	if diff := cmp.Diff(before, e.spec(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
	}
}

// TestAStrategyThatSomebodyEditsInABlueGreenRelease is kept for the end of it.
func TestAStrategyThatSomebodyEditsInABlueGreenRelease(t *testing.T) {
	e := beginBlueGreen(newEnv(t), ofDeployment, steps("50%", "100%"), "")
	e.setImage("v2")
	e.paused(1, "v2", 2)
	edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate.MaxUnavailable, d.Spec.MinReadySeconds = ptr.To(intstr.FromString("50%")), 1
	})
	if s := e.deployment().Spec; s.MinReadySeconds != budget.BesideSeconds || s.Strategy.RollingUpdate.MaxUnavailable.String() != "0" {
		t.Errorf("it is stored as %d, %+v", s.MinReadySeconds, s.Strategy.RollingUpdate)
	}
	e.confirm(1)
	e.paused(2, "v2", 4)
	e.beside(4, 4)
	e.approve()
	e.ends("v2", corev1.ConditionTrue)
	if s := e.deployment().Spec; s.MinReadySeconds != 1 || s.Strategy.RollingUpdate.MaxUnavailable.String() != "50%" {
		t.Errorf("in the end it is %d, %+v", s.MinReadySeconds, s.Strategy.RollingUpdate)
	}
}

// TestABlueGreenReleaseThatIsKept: with the gate, a Rollout that is deleted leaves both versions as they are, trap T12.
func TestABlueGreenReleaseThatIsKept(t *testing.T) {
	takePlace(t)
	e := &deploymentEnv{env: enter(t, alone)}
	e.beginWith(3, [2]string{"1", "0"}, blueGreenOf(ofDeployment, steps("100%"), ""))
	e.setImage("v2")
	e.paused(1, "v2", 3)
	e.remove()
	e.Never("a Pod goes", func() bool { got := e.images(); return got["v1"] < 3 || got["v2"] < 3 })
	d := e.deployment()
	if _, marked := d.Annotations[keys.InProgressing]; marked || d.Annotations[keys.OriginalDeploymentStrategy] == "" {
		t.Errorf("annotations %v", d.Annotations)
	}
}
