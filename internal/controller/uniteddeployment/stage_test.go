package uniteddeployment

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// inWaves gives a and b 4 Pods each, and updates a before b, with a pause between them.
func inWaves(set *v1beta1.UnitedDeployment) {
	four, eight := intstr.FromInt32(4), int32(8)
	set.Spec.Replicas = &eight
	set.Spec.Topology.Subsets = []v1beta1.Subset{{Name: "a", Replicas: &four}, {Name: "b"}}
	set.Spec.UpdateStrategy.Waves = []v1beta1.UpdateWave{{Name: "canary", Subsets: []string{"a"}, Pause: true}}
}

// withBudget gives them a budget instead.
func withBudget(budget intstr.IntOrString) func(*v1beta1.UnitedDeployment) {
	return func(set *v1beta1.UnitedDeployment) {
		inWaves(set)
		set.Spec.UpdateStrategy.Waves, set.Spec.UpdateStrategy.MaxUnavailable = nil, &budget
	}
}

func image(name string) func(*v1beta1.UnitedDeployment) {
	return func(set *v1beta1.UnitedDeployment) {
		set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image = name
	}
}

// runs says which images the workloads have, what maxUnavailable, and what the status says of what waits.
func (w *world) told() string {
	w.Helper()
	var out []string
	for _, name := range []string{"a", "b"} {
		spec := w.of(name).Object.(*appsv1.Deployment).Spec
		text := fmt.Sprintf("%s %s", name, spec.Template.Spec.Containers[0].Image)
		if r := spec.Strategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
			text += " " + r.MaxUnavailable.String()
		}
		out = append(out, text)
	}
	for _, c := range w.Set.Status.Conditions {
		if c.Type == v1beta1.UnitedDeploymentSubsetUpdated && c.Reason != "" {
			out = append(out, c.Reason)
		}
	}
	return strings.Join(append(out, w.Set.Status.Wave), ", ")
}

func (w *world) tells(when, want string) {
	w.Helper()
	if got := strings.TrimSuffix(w.told(), ", "); got != want {
		w.Errorf("%s: %q, want %q", when, got, want)
	}
}

// replaced has a workload run with new Pods, all of them ready.
func (w *world) replaced(subset string, ready int) {
	w.Helper()
	w.of(subset).Pods = nil
	w.run(subset, ready, 0)
}

func TestWaves(t *testing.T) {
	w := newWorld(t, inWaves)
	w.pass()
	w.run("a", 4, 0)
	w.run("b", 4, 0)
	w.pass()
	w.wants("at rest nothing is written")
	w.tells("at first all subsets are created", "a one, b one")

	w.change(image("two"))
	w.wants("a alone is written", "write the Deployment of subset a with 4 replicas")
	w.pass()
	w.tells("b waits for its wave", "a two, b one, WaitingForWave, canary")
	w.wants("while it waits nothing is written")

	nine := int32(9)
	w.change(func(set *v1beta1.UnitedDeployment) { set.Spec.Replicas = &nine })
	w.wants("it is scaled as it is", "write the Deployment of subset b with 5 replicas")
	w.tells("it is scaled", "a two, b one, WaitingForWave, canary")

	w.replaced("a", 4)
	w.run("b", 5, 0)
	w.pass()
	w.tells("the rollout pauses", "a two, b one, WavePaused, canary")
	w.change(func(set *v1beta1.UnitedDeployment) {
		set.Annotations = map[string]string{keys.ContinuedWave: "web-other/canary"}
	})
	w.wants("another rollout was continued")
	w.change(func(set *v1beta1.UnitedDeployment) {
		set.Annotations = map[string]string{keys.ContinuedWave: set.Status.UpdatedRevision + "/canary"}
	})
	w.wants("b follows", "write the Deployment of subset b with 5 replicas")
	w.replaced("b", 5)
	w.pass()
	w.tells("all are updated", "a two, b two")
	w.wants("at the end nothing is written")
}

// TestAWaveWaitsForTheLastOldPod: while a surge is there, an old Pod may be among those that are available.
func TestAWaveWaitsForTheLastOldPod(t *testing.T) {
	w := newWorld(t, inWaves)
	w.pass()
	w.run("a", 4, 0)
	w.run("b", 4, 0)
	w.pass()
	w.change(image("two"))
	w.pass()
	w.replaced("a", 4)
	w.of("a").Object.(*appsv1.Deployment).Status.Replicas = 5
	w.pass()
	w.tells("there is one Pod more than is wanted", "a two, b one, WaitingForWave, canary")
	w.of("a").Object.(*appsv1.Deployment).Status.Replicas = 4
	w.pass()
	w.tells("it is gone", "a two, b one, WavePaused, canary")
}

func TestABudgetOverSubsets(t *testing.T) {
	w := newWorld(t, withBudget(intstr.FromInt32(1)))
	w.pass()
	w.run("a", 4, 0)
	w.run("b", 4, 0)
	w.pass()
	w.wants("at rest nothing is written")
	w.change(image("two"))
	w.wants("a is first", "write the Deployment of subset a with 4 replicas")
	w.pass()
	w.tells("b waits", "a two, b one, WaitingForBudget")
	w.wants("while it waits nothing is written")
	w.run("a", 4, 0)
	w.wants("b follows", "write the Deployment of subset b with 4 replicas")
	w.run("b", 4, 0)
	w.pass()
	w.tells("all are updated", "a two, b two")
	w.wants("at the end nothing is written")

	w.change(withBudget(intstr.FromString("50%")))
	w.change(image("three"))
	w.wants("there is room for both", "write the Deployment of subset a with 4 replicas", "write the Deployment of subset b with 4 replicas")
	w.run("a", 4, 0)
	w.run("b", 4, 0)
	w.pass()
	w.change(func(set *v1beta1.UnitedDeployment) { set.Spec.UpdateStrategy.MaxUnavailable = nil })
	w.wants("without a budget each has what its template says",
		"write the Deployment of subset a with 4 replicas", "write the Deployment of subset b with 4 replicas")
	w.wants("once")
}

// TestABudgetBelowTheOwnLimit: a workload that would take 3 Pods out of service gets 2.
func TestABudgetBelowTheOwnLimit(t *testing.T) {
	three := intstr.FromInt32(3)
	w := newWorld(t, withBudget(intstr.FromInt32(2)), func(set *v1beta1.UnitedDeployment) {
		set.Spec.Template.DeploymentTemplate.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &three}
	})
	w.pass()
	w.run("a", 4, 0)
	w.run("b", 3, 1)
	w.pass()
	w.change(image("two"))
	w.pass()
	w.pass()
	w.tells("one of b is unavailable, which may be replaced, and one of a", "a two 1, b two 1")
}

// TestAStrategyThatTakesTooMany is told, and holds nobody else.
func TestAStrategyThatTakesTooMany(t *testing.T) {
	w := newWorld(t, withBudget(intstr.FromInt32(2)), func(set *v1beta1.UnitedDeployment) {
		set.Spec.Template.DeploymentTemplate.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	})
	w.pass()
	w.run("a", 4, 0)
	w.run("b", 4, 0)
	w.change(image("two"))
	w.pass()
	if c := w.Set.Status.Conditions; !strings.Contains(fmt.Sprint(c), "its strategy takes 4 Pods out of service at once") {
		t.Errorf("conditions %+v", c)
	}
	w.tells("both wait", "a one, b one, WaitingForBudget")
}
