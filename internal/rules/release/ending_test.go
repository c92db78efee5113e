package release

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestAWorkloadThatIsKeptFrozen: a release that is cut short leaves its workload where it is if the manager is told so, in all styles; one that
// has succeeded or goes back does not, trap T12.
func TestAWorkloadThatIsKeptFrozen(t *testing.T) {
	cases := map[string]struct {
		style  Style
		before func(*world)
		want   []string
	}{
		"deleted": {"Partition", func(w *world) { w.plan.Deleted = true },
			[]string{"Unpin", "RestoreRoutes", "RemoveService", "Release", "Abandon"}},
		"disabled": {"Partition", func(w *world) { w.plan.Disabled = true },
			[]string{"Unpin", "RestoreRoutes", "RemoveService", "Release", "Abandon"}},
		"deleted, and somebody has removed the mark": {"Partition", func(w *world) {
			w.seen.Workload.Marked, w.plan.Deleted = false, true
		},
			[]string{"Unpin", "RestoreRoutes", "RemoveService", "Release", "Abandon"}},
		"with a second Deployment": {"Canary", func(w *world) { w.plan.Disabled = true },
			[]string{"Unpin", "RestoreRoutes", "RemoveService", "Release", "Abandon"}},
		"blueGreen": {"BlueGreen", func(w *world) { w.plan.Disabled = true },
			[]string{"Unpin", "RestoreRoutes", "RemoveService", "Release", "Abandon"}},
		"the old template is back": {"Partition", func(w *world) {
			w.template("v1")
			w.plan.Deleted = true
		}, []string{"Unpin", "RestoreRoutes", "RemoveService", "Resume", "Release", "Unmark"}},
		"all steps are done": {"Partition", func(w *world) {
			for range 2 {
				w.approve()
				for range 3 {
					w.seen.Now = w.seen.Now.Add(4 * time.Second)
					w.round(whole)
				}
			}
			for w.show().Reason != "Finalising" {
				w.seen.Now = w.seen.Now.Add(4 * time.Second)
				w.round(whole)
			}
			w.log, w.plan.Deleted = nil, true
		}, []string{"Release", "Unmark"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := withTraffic(batches(step(2, "20%"), step("100%", "")))
			plan.KeepsFrozen, plan.Style = true, tc.style
			w := newWorld(plan)
			w.template("v2")
			w.wait()
			w.log = nil
			tc.before(w)
			w.wait()
			if left := w.clean(); left != "" || w.broken != "" {
				t.Errorf("%s %s", left, w.broken)
			}
			if diff := cmp.Diff(tc.want, w.log); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if want := slices.Contains(tc.want, "Abandon"); w.abandoned != want {
				t.Errorf("left frozen: %v, want %v", w.abandoned, want)
			}
		})
	}
}

// TestTheRecordOfARelease: a release that is over waits for its record, and not for one that can't be written.
func TestTheRecordOfARelease(t *testing.T) {
	for name, recordless := range map[string]bool{"it is written": false, "it can't be written": true} {
		t.Run(name, func(t *testing.T) {
			plan := batches(step("100%", ""))
			plan.Records = true
			w := newWorld(plan)
			w.recordless = recordless
			w.template("v2")
			w.wait()
			if show := w.show(); show.Phase != "Healthy" || show.Reason != "Completed" {
				t.Errorf("ended as %+v", show)
			}
			if n := len(w.log); w.log[n-1] != "Record" || slices.Index(w.log, "Record") != n-1 {
				t.Errorf("actions %v, want Record once, as the last one", w.log)
			}
			w.log = nil
			w.wait()
			if len(w.log) > 0 {
				t.Errorf("at rest, %v", w.log)
			}
		})
	}
}

// TestWhatAReleaseHasLeftFrozenGoesOn where the finalizer of its Rollout was removed by hand, and another Rollout has come since.
func TestWhatAReleaseHasLeftFrozenGoesOn(t *testing.T) {
	for phase, disabled := range map[v1beta1.RolloutPhase]bool{"Healthy": false, "Disabled": true} {
		t.Run(string(phase), func(t *testing.T) {
			w := newWorld(batches(step("20%", ""), step("100%", "")))
			w.plan.Disabled = disabled
			w.seen.Workload.Frozen, w.seen.Workload.Left = true, true
			w.round(whole)
			if got := w.log[len(w.log)-1]; got != "Unmark" && got != "Resume" || w.seen.Workload.Frozen {
				t.Errorf("actions %v", w.log)
			}
			w.seen.Workload.Left = false
			w.wait()
			if w.status.Phase != phase || w.status.Message == "" {
				t.Errorf("phase %s: %s", w.status.Phase, w.status.Message)
			}
		})
	}
}

// TestWhatTheEndStores: nothing while the workload goes on by itself, however long that takes, and then one status, unless the release has to be
// recorded before.
func TestWhatTheEndStores(t *testing.T) {
	w := newWorld(batches(step("100%", "")))
	w.template("v2")
	for range 100 {
		w.seen.Now = w.seen.Now.Add(time.Second)
		w.round(whole)
		if w.status.CanaryStatus.FinalisingStep == v1beta1.FinalisingStepResumeWorkload {
			break
		}
	}
	seen, workload := w.seen, *w.seen.Workload
	seen.Workload, seen.Batch.Resumed = &workload, false
	busy := Next(w.plan, w.status, seen).Status
	seen.Now = seen.Now.Add(5 * time.Second)
	if later := Next(w.plan, busy, seen).Status; !cmp.Equal(busy, later) || busy.CanaryStatus.FinalisingStep != v1beta1.FinalisingStepResumeWorkload {
		t.Errorf("it stores anew what has not changed (-before +after):\n%s", cmp.Diff(busy, later))
	}
	workload.Marked, workload.Frozen, seen.Batch = false, false, Batch{}
	for records, want := range map[bool]v1beta1.RolloutPhase{false: v1beta1.RolloutPhaseHealthy, true: v1beta1.RolloutPhaseProgressing} {
		w.plan.Records = records
		over := Next(w.plan, busy, seen).Status
		if reason := over.Conditions[0].Reason; over.Phase != want || reason != v1beta1.ReasonCompleted {
			t.Errorf("recorded %t: phase %s, reason %s", records, over.Phase, reason)
		}
		if after := Next(w.plan, over, seen).Status; !records && !cmp.Equal(over, after) {
			t.Errorf("it stores once more (-before +after):\n%s", cmp.Diff(over, after))
		}
	}
}
