package rollouts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// unlabelled is a policy that keeps the label by which the webhook knows workloads off those of one namespace: so that a change is made
// before the label is there, whatever the pace of the controller.
const unlabelled = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [apps.kruise.io], apiVersions: ["*"], operations: [UPDATE], resources: [clonesets]}]
  matchConditions: [{name: here, expression: "request.namespace == 'NAME'"}]
  validations: [{expression: "!('rollouts.kruise.io/workload-type' in object.metadata.?labels.orValue({}))"}]
`

const binding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`

// keepUnlabelled has the policy in force; the function that it returns takes it away.
func (e *env) keepUnlabelled() (end func()) {
	e.Helper()
	var made []client.Object
	for _, text := range []string{unlabelled, binding} {
		o := e.Manifest(strings.ReplaceAll(text, "NAME", e.Namespace))
		o.SetNamespace("")
		e.Must(e.Create(e.Ctx, o))
		e.CleanUp(o)
		made = append(made, o)
	}
	e.Eventually("the policy is in force", func() error {
		set := e.cloneSet()
		set.Labels = map[string]string{keys.WorkloadType: "cloneset"}
		if err := e.Update(e.Ctx, set, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("the label is not refused by it: %w", err)
		}
		return nil
	})
	return func() {
		for _, o := range made {
			e.Must(client.IgnoreNotFound(e.Delete(e.Ctx, o)))
		}
	}
}

// TestAChangeThatPassesIsSaid: a change that went out before the webhook knew the workload is said loudly, trap T3, and the next one is
// released in steps.
func TestAChangeThatPassesIsSaid(t *testing.T) {
	e := newEnv(t)
	e.Make(fmt.Sprintf(cloneSet, 2, ""))
	end := e.keepUnlabelled()
	e.Make(rolloutOf(ofCloneSet, steps("1", "100%")))
	e.Eventually("the Rollout is healthy", func() error {
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy {
			return fmt.Errorf("phase %s", r.Status.Phase)
		}
		return e.ready("v1", 2)
	})
	e.setImage("v2")
	e.intercepted(corev1.ConditionFalse)
	e.Eventually("the change has gone out", func() error { return e.ready("v2", 2) })
	e.intercepted(corev1.ConditionFalse) // it stays
	if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseHealthy {
		t.Errorf("phase %s", phase)
	}
	e.Eventually("an event says so", func() error {
		if got := e.Reasons("demo"); !slices.Contains(got, "NotIntercepted") {
			return fmt.Errorf("events %v", got)
		}
		return nil
	})
	end()
	e.Eventually("the label is there", func() error {
		if e.cloneSet().Labels[keys.WorkloadType] == "" {
			return errors.New("it is not")
		}
		return nil
	})
	e.setImage("v3")
	e.paused(1, "v3", 1)
	e.intercepted(corev1.ConditionTrue)
}

// TestAnUpdateUnderWayIsSaid: a workload and its Rollout were applied at one moment, and the workload is being updated when the Rollout comes.
func TestAnUpdateUnderWayIsSaid(t *testing.T) {
	e := newEnv(t)
	e.Make(fmt.Sprintf(cloneSet, 4, ""))
	e.Eventually("it has Pods", func() error { return e.ready("v1", 4) })
	edit(e, "web", e.cloneSet(), func(s *cloneSetType) {
		s.Spec.Template.Spec.Containers[0].Image = "web:v2"
		s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}} // so that it goes on until the test ends
	})
	e.Eventually("a Pod is updated", func() error {
		if e.images()["v2"] == 0 {
			return errors.New("none is")
		}
		return nil
	})
	e.Make(rolloutOf(ofCloneSet, steps("1", "100%")))
	e.intercepted(corev1.ConditionFalse)
}

// intercepted waits until the Rollout says whether the last change is released in steps.
func (e *env) intercepted(want corev1.ConditionStatus) {
	e.Helper()
	e.Eventually(fmt.Sprintf("condition %s is %s", v1beta1.ConditionIntercepted, want), func() error {
		if c := condition(e.rollout(), v1beta1.ConditionIntercepted); c == nil || c.Status != want {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}
