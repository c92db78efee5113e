package rollouts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// gate is a readiness gate of Pods, which a test opens.
const gate corev1.PodConditionType = "example.com/told"

// unguarded returns the manifest of a Rollout without its guard, which would stop Pods that are not ready for long.
func unguarded(rollout string) string {
	return strings.Replace(rollout, "  strategy:", "  strategy:\n    guard: {onFailure: None}", 1)
}

// gated has the new version wait for the gate, and lets so many Pods be out of service.
func (e *env) gated(version, maxUnavailable string) {
	e.Helper()
	edit(e, "web", &cloneSetType{}, func(s *cloneSetType) {
		unavailable := intstr.Parse(maxUnavailable)
		s.Spec.UpdateStrategy.RollingUpdate = &rollingType{MaxUnavailable: &unavailable}
		s.Spec.Template.Spec.Containers[0].Image = "web:" + version
		s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	})
}

// open opens the gate of so many Pods that wait for it.
func (e *env) open(pods int) {
	e.Helper()
	for _, p := range e.Pods() {
		waits := slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate }) &&
			!slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate })
		if !waits || p.DeletionTimestamp != nil || pods == 0 {
			continue
		}
		pods--
		scene.EditStatus(e.Env, p.Name, &corev1.Pod{}, func(now *corev1.Pod) {
			now.Status.Conditions = append(now.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue})
		})
	}
	if pods > 0 {
		e.Fatalf("%d Pods too few wait for the gate", pods)
	}
}

// TestScenario21FailureThreshold: at a threshold of 20%, 4 of 5 ready Pods are enough, and 3 are not; at 100%, one has to be ready.
func TestScenario21FailureThreshold(t *testing.T) {
	t.Parallel()
	for threshold, last := range map[string]int{"20%": 4, "100%": 1} {
		t.Run(threshold, func(t *testing.T) {
			e := newEnv(t)
			manifest := rolloutOf(ofCloneSet, steps("50%", "100%")) + "      failureThreshold: " + threshold + "\n"
			e.start(fmt.Sprintf(cloneSet, 10, ""), unguarded(manifest))
			e.gated("v2", "100%")
			e.Eventually("five Pods are updated, and none is ready", func() error {
				if got := e.images()["v2"]; got != 5 {
					return fmt.Errorf("%d are", got)
				}
				return e.isAt(1, v1beta1.StepStateUpgrade)
			})
			e.open(last - 1)
			e.Eventually("all but one of those that are enough are ready", func() error { return e.ready("v2", last-1) })
			e.Never("the batch counts as ready", func() bool { return e.isAt(1, v1beta1.StepStateUpgrade) != nil })
			e.open(1)
			e.Eventually("the batch is ready", func() error { return e.isAt(1, v1beta1.StepStatePaused) })
			if err := e.ready("v2", last); err != nil {
				t.Error(err)
			}
		})
	}
}

func (e *env) setImageOfStatefulSet(version string) {
	e.Helper()
	edit(e, "web", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:" + version })
}
