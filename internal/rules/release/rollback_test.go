package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNamesOfRollbacksInBatches: Pods that a rollback brings back may still have the labels of the release that had brought them there.
func TestNamesOfRollbacksInBatches(t *testing.T) {
	cases := map[string]struct {
		named string
		want  []string
	}{
		"nobody names releases": {"", []string{"v2", "rollback-v1", "rollback-v1", "v2"}},
		"a user names them":     {"7", []string{"7", "7", "7", "7"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := batches(step("20%", ""), step("100%", ""))
			plan.RollbackInBatches = true
			w := newWorld(plan)
			release := func(revision string) string {
				w.template(revision)
				if w.seen.Workload.ReleaseID = tc.named; tc.named == "" {
					w.seen.Workload.ReleaseID = revision
				}
				w.wait()
				return w.at().ObservedRolloutID
			}
			got := []string{release("v2"), release("v1")}
			if step := w.at().CurrentStepIndex; step != 1 {
				t.Errorf("the way back is at step %d, want 1", step)
			}
			w.approve()
			w.wait()
			if show := w.show(); show.Phase != "Healthy" {
				t.Errorf("ended as %+v", show)
			}
			got = append(got, w.at().ObservedRolloutID, release("v2"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
