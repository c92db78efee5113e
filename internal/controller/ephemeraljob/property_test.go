package ephemeraljob

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 3154, 5544, 6504) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// suite is the controller, with a planner that may be mistaken, in clusters with one EphemeralJob and Pods that come, change and go.
func suite(planned func(State) plan.Plan) promises.Suite {
	watched := []client.Object{&v1alpha1.EphemeralJob{}, &corev1.Pod{}}
	return promises.Suite{Scheme: promises.Scheme(v1alpha1.AddToScheme), Watched: watched, Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind()
				k.Plan = planner.In(w)
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Others: []func() bool{s.endContainers}, Check: invariant.CheckEphemeralJob,
			Converged: func() []string { return invariant.EphemeralConverged(w.Cluster, s.job()) },
		}
	}}
}

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it forgets what runs":     {func(v *State) { v.busy = 0 }, invariant.RuleEphemeralParallelism},
		"it counts only what runs": {func(v *State) { v.busy = v.running }, invariant.RuleEphemeralParallelism},
		"it forgets what it has done": {func(v *State) {
			for i := range v.targets {
				v.targets[i].State = ephemeral.Absent
			}
			containers := v.Job.Spec.Template.EphemeralContainers
			v.Job = v.Job.DeepCopy()
			v.Job.Spec.Template.EphemeralContainers = nil
			for i := range containers {
				c := containers[i].DeepCopy()
				c.Name += v.Now.Format("-150405")
				v.Job.Spec.Template.EphemeralContainers = append(v.Job.Spec.Template.EphemeralContainers, *c)
			}
		}, invariant.RuleAddedOnce},
		"it forgets replicas": {func(v *State) {
			v.Job = v.Job.DeepCopy()
			v.Job.Spec.Replicas = nil
			*v = Classify(v.Snapshot)
		}, invariant.RuleEphemeralReplicas},
		"it forgets the selector": {func(v *State) {
			v.Pods = slices.Clone(v.Pods)
			for i, p := range v.Pods {
				v.Pods[i] = p.DeepCopy()
				v.Pods[i].DeletionTimestamp = nil
				v.Pods[i].Status.Phase = corev1.PodRunning
			}
			*v = Classify(v.Snapshot)
		}, invariant.RuleEphemeralTarget},
		"it forgets the pause": {func(v *State) {
			v.Job = v.Job.DeepCopy()
			v.Job.Spec.Paused = false
		}, invariant.RuleEphemeralPaused},
		"it judges a job that is over once more": {func(v *State) {
			if isFinished(v.Job) {
				v.Job = v.Job.DeepCopy()
				v.Job.Status = v1alpha1.EphemeralJobStatus{}
				v.result = v.evaluate()
				v.result.phase = v1alpha1.EphemeralJobFailed
			}
		}, invariant.RuleOver},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v State) plan.Plan {
				tc.mistake(&v)
				return Plan(v)
			}).Break(t, tc.want)
		})
	}
}
