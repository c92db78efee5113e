package uniteddeployment

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestARolloutInWaves: a, then a pause, then b, then c, which is in no wave.
func TestARolloutInWaves(t *testing.T) {
	for _, kind := range []string{deployment, cloneSet, native, advanced} {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			e.create(5, template(kind, "nginx:1.27"), `topology: {subsets: [{name: a, replicas: 1}, {name: b, replicas: 2}, {name: c}]}
  updateStrategy: {waves: [{name: canary, subsets: [a], pause: true}, {name: most, subsets: [b]}]}`)
			e.settles("a=1 b=2 c=2")
			e.patch("spec: {template: " + template(kind, "nginx:1.28") + "}")
			e.Eventually("it pauses after a", func() error {
				if got, c := e.ready(runs("nginx:1.28")), e.condition(v1beta1.UnitedDeploymentSubsetUpdated); got != "a=1" || c != "False WavePaused" {
					return fmt.Errorf("updated: %s, condition %q", got, c)
				}
				return nil
			})
			if s := e.set().Status; s.Wave != "canary" || s.CurrentRevision == s.UpdatedRevision {
				t.Errorf("status %+v", s)
			}
			e.patch("spec: {replicas: 6}")
			e.settles("a=1 b=2 c=3")
			if got := e.ready(runs("nginx:1.27")); got != "b=2 c=3" {
				t.Errorf("still at the old template: %s", got)
			}
			e.isAtRest("the pause began")
			e.patch(fmt.Sprintf("metadata: {annotations: {%s: %s/canary}}", keys.ContinuedWave, e.set().Status.UpdatedRevision))
			e.Eventually("all are updated, c last", func() error {
				pods := e.Pods() // of one moment: b may be done, and c begin, between two reads
				updated := readyOf(pods, runs("nginx:1.28"))
				if b, c := readyOf(pods, in("b", "nginx:1.27")), readyOf(pods, in("c", "nginx:1.28")); b != "" && c != "" {
					t.Errorf("c is updated before b: %s at the old template, and %s at the new one", b, c)
				}
				if s := e.set().Status; updated != "a=1 b=2 c=3" || s.CurrentRevision != s.UpdatedRevision || s.Wave != "" {
					return fmt.Errorf("updated: %s, status %+v", updated, s)
				}
				return nil
			})
			e.isAtRest("the end of the rollout")
		})
	}
}

func in(subset, image string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Labels[keys.SubsetName] == subset && runs(image)(p) }
}

// TestABudgetOverAllSubsets: at no time are more than 2 of 9 Pods unavailable, though each of the workloads would let 2 of its own be.
func TestABudgetOverAllSubsets(t *testing.T) {
	for _, kind := range []string{cloneSet, deployment, native} {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			text := template(kind, "nginx:1.27")
			e.create(9, text, "topology: {subsets: [{name: a}, {name: b}, {name: c}]}\n  updateStrategy: {maxUnavailable: 2}")
			e.settles("a=3 b=3 c=3")
			e.patch("spec: {template: " + template(kind, "nginx:1.28") + "}")
			least := 9
			e.Within(3*time.Minute, "all are updated", func() error {
				available := 0
				for _, p := range e.Pods() {
					if scene.IsReady(&p) && p.DeletionTimestamp == nil {
						available++
					}
				}
				least = min(least, available)
				if s := e.set().Status; e.ready(runs("nginx:1.28")) != "a=3 b=3 c=3" || s.CurrentRevision != s.UpdatedRevision {
					return fmt.Errorf("updated: %s, status %+v", e.ready(runs("nginx:1.28")), s)
				}
				return nil
			})
			if least < 7 {
				t.Errorf("%d Pods were unavailable at a time", 9-least)
			}
			e.isAtRest("the end of the rollout")
		})
	}
}
