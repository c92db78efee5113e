package broadcastjob

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a promise was broken:
// a restart forgot the names of Pods while a creation was under way.
func TestWhatBrokeOnceHolds(t *testing.T) {
	suite(Plan).Again(t, 1081, 2711, 2731, 3700, 6770, 11263, 11437)
}

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestNamesAreNew checks that a Pod that takes the place of another has another name.
func TestNamesAreNew(t *testing.T) { suite(Plan).RenewNames(t) }

// suite is the controller, with a planner that may be mistaken, in clusters with one BroadcastJob and nodes that come and go.
func suite(planned func(State) plan.Plan) promises.Suite {
	watched := []client.Object{&v1beta1.BroadcastJob{}, &corev1.Pod{}, &corev1.Node{}}
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched, Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind(Options{})
				k.Plan = planner.In(w)
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Others: []func() bool{s.runPods, s.goOn}, Check: invariant.CheckBroadcastJob,
			Converged: func() []string { return invariant.BroadcastConverged(w.Cluster, s.job()) },
		}
	}}
}

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it forgets parallelism": {func(v *State) { v.limit = 100 }, invariant.RuleJobParallelism},
		"it forgets what has ended, and the names of that": {func(v *State) {
			for _, p := range v.targets {
				p.members = slices.DeleteFunc(p.members, func(m *member) bool { return m.class == succeeded || m.class == failed })
			}
		}, invariant.RuleOnce},
		"it deletes what has ended": {func(v *State) {
			for _, m := range v.members {
				if m.class == succeeded {
					m.unfit = "mistake"
				}
			}
		}, invariant.RuleEnded},
		"it forgets the taints": {func(v *State) {
			for _, node := range v.Nodes {
				if !slices.ContainsFunc(v.targets, func(p *target) bool { return p.name == node.Name }) {
					v.targets = append(v.targets, &target{name: node.Name, node: node, fits: true})
				}
			}
		}, invariant.RuleNode},
		"it goes on with a job that is over": {func(v *State) {
			v.Job = v.Job.DeepCopy()
			v.Job.Status = v1beta1.BroadcastJobStatus{}
			*v = Classify(v.Snapshot)
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
