package advancedcronjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) {
	suite(Plan).Again(t, 1084, 2319, 11224, 16974, 18104, 21274, 25339, 26554, 32044, 32134)
}

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// suite is the controller, with a planner that may be mistaken, in clusters with one AdvancedCronJob.
func suite(planned func(State) plan.Plan) promises.Suite {
	watched := []client.Object{&v1beta1.AdvancedCronJob{}, &batchv1.Job{}, &v1beta1.BroadcastJob{}, &v1beta1.ImageListPullJob{}}
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched, Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind()
				k.Plan = planner.In(w)
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Others: []func() bool{s.finish}, Check: invariant.CheckAdvancedCronJob,
			Converged: func() []string { return invariant.CronConverged(w.Cluster, s.cron()) },
		}
	}}
}

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it believes only the jobs that are there": {func(v *State) {
			v.last, v.pending = time.Time{}, false
			for _, c := range v.children {
				if c.slot.After(v.last) {
					v.last = c.slot
				}
			}
		}, invariant.RuleSlotOnce},
		"it forgets that jobs are under way": {func(v *State) {
			for _, c := range v.children {
				c.finished = true
			}
		}, invariant.RuleForbid},
		"it forgets the deadline": {func(v *State) {
			v.Cron = v.Cron.DeepCopy()
			v.Cron.Spec.StartingDeadlineSeconds = nil
		}, invariant.RuleDeadline},
		"it does not know that it is paused": {func(v *State) {
			v.Cron = v.Cron.DeepCopy()
			v.Cron.Spec.Paused = nil
		}, invariant.RuleCronPaused},
		"its clock is slow": {func(v *State) { v.Now = v.Now.Add(-5 * time.Minute) }, invariant.RuleLatest},
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
