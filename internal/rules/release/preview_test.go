package release

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// told returns what a preview says of steps for so many Pods, with its remarks.
func told(t *testing.T, p Plan, replicas int32, planned func(*intstr.IntOrString, int32) (int32, error)) []string {
	t.Helper()
	stages, err := Preview(p, replicas, func(step *intstr.IntOrString) (int32, error) { return planned(step, replicas) })
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range stages {
		out = append(out, s.String())
		for _, r := range s.Remarks {
			out = append(out, "! "+r)
		}
	}
	return out
}

func TestPreview(t *testing.T) {
	step := func(replicas string, traffic string, seconds int32) v1beta1.Step {
		s := v1beta1.Step{Replicas: ptr.To(intstr.Parse(replicas))}
		if traffic != "" {
			s.Traffic = &traffic
		}
		if seconds >= 0 {
			s.Pause.Duration = &seconds
		}
		return s
	}
	matched := v1beta1.Step{Replicas: ptr.To(intstr.FromInt32(1)), Matches: []v1beta1.HTTPRouteMatch{{}}}
	for name, tc := range map[string]struct {
		steps   []v1beta1.Step
		plan    Plan
		pods    int32
		planned func(*intstr.IntOrString, int32) (int32, error)
		want    []string
	}{
		"traffic, a time and an approval": {
			[]v1beta1.Step{matched, step("20%", "5%", 600), step("100%", "", -1)}, Plan{Routed: true}, 10, Planned, []string{
				"step 1 of 3: 1 of 10 Pods, requests that match, then waits for an approval",
				"step 2 of 3: 2 of 10 Pods, 5% of requests, then waits 600 s",
				"step 3 of 3: 10 of 10 Pods, all requests, then ends",
			}},
		"a Deployment keeps one": {
			[]v1beta1.Step{step("95%", "", 0), step("100%", "", -1)}, Plan{}, 10, DeploymentLimit, []string{
				"step 1 of 2: 9 of 10 Pods, requests as they come, then goes on",
				"! 95% of 10 Pods, rounded up, are all: one stays old",
				"step 2 of 2: 10 of 10 Pods, all requests, then ends",
			}},
		"others do not": {
			[]v1beta1.Step{step("95%", "", -1), step("100%", "", -1)}, Plan{}, 10, Planned, []string{
				"step 1 of 2: 10 of 10 Pods, all requests, then waits for an approval",
				"! 95% of 10 Pods, rounded up, are all: none stays old",
				"step 2 of 2: 10 of 10 Pods, all requests, then ends",
				"! 100% of 10 Pods are 10, as many as at step 1: it changes nothing",
			}},
		"percentages that come to one number": {
			[]v1beta1.Step{step("10%", "", -1), step("20%", "", -1)}, Plan{}, 5, Planned, []string{
				"step 1 of 2: 1 of 5 Pods, requests as they come, then waits for an approval",
				"step 2 of 2: 1 of 5 Pods, requests as they come, then waits for an approval",
				"! 20% of 5 Pods are 1, as many as at step 1: it changes nothing",
			}},
		"the same Pods with more traffic": {
			[]v1beta1.Step{step("1", "5%", -1), step("1", "10%", -1)}, Plan{Routed: true}, 5, Planned, []string{
				"step 1 of 2: 1 of 5 Pods, 5% of requests, then waits for an approval",
				"step 2 of 2: 1 of 5 Pods, 10% of requests, then waits for an approval",
			}},
		"a percentage of fewer than the number before, and a number of more than there are": {
			[]v1beta1.Step{step("4", "", -1), step("50%", "", -1), step("9", "", -1)}, Plan{}, 5, Planned, []string{
				"step 1 of 3: 4 of 5 Pods, requests as they come, then waits for an approval",
				"step 2 of 3: 4 of 5 Pods, requests as they come, then waits for an approval",
				"! 50% of 5 Pods are 3, and step 1 has updated 4: none of them goes back",
				"step 3 of 3: 5 of 5 Pods, all requests, then waits for an approval",
				"! it says 9 Pods, and there are 5",
			}},
		"traffic where no old Pod is left": {
			[]v1beta1.Step{step("2", "50%", -1)}, Plan{Routed: true}, 2, Planned, []string{
				"step 1 of 1: 2 of 2 Pods, all requests, then waits for an approval",
				"! it leads no traffic, because it updates all Pods: requests go to all of them",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.plan.Steps, tc.plan.Style = tc.steps, v1beta1.RollingStylePartition
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), strings.Join(told(t, tc.plan, tc.pods, tc.planned), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAReleaseGoesAsItsPreviewSays plays releases of any steps: where they wait, the workload has the Pods, and the routes lead what the
// preview said, and where it says that they do not wait, they do not.
func TestAReleaseGoesAsItsPreviewSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := Plan{
			Style:  rapid.SampledFrom([]Style{v1beta1.RollingStylePartition, v1beta1.RollingStyleCanary}).Draw(t, "style"),
			Routed: rapid.Bool().Draw(t, "routed"), Grace: time.Second,
		}
		for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
			n := rapid.IntRange(1, 100).Draw(t, "replicas")
			s := step(fmt.Sprintf("%d%%", n), "")
			if rapid.Bool().Draw(t, "number") {
				s = step(n/8+1, "")
			}
			if rapid.Bool().Draw(t, "traffic") {
				s.Traffic = ptr.To(fmt.Sprintf("%d%%", 10*(i+1)))
			}
			if rapid.Bool().Draw(t, "passing") {
				s = passing(s)
			}
			plan.Steps = append(plan.Steps, s)
		}
		w := newWorld(plan).wait()
		stages, err := Preview(w.plan, w.seen.Workload.Replicas, func(s *intstr.IntOrString) (int32, error) {
			return Planned(s, w.seen.Workload.Replicas)
		})
		if err != nil {
			t.Fatal(err)
		}
		w.template("v2")
		for _, s := range stages {
			if !s.Approval {
				continue
			}
			w.wait()
			if at := w.at(); at.CurrentStepIndex != s.Step || at.CurrentStepState != v1beta1.StepStatePaused {
				t.Fatalf("it is at step %d, %s, and was to wait at: %s", at.CurrentStepIndex, at.CurrentStepState, s)
			}
			if w.seen.Workload.Updated != s.Pods || w.seen.Traffic.Routes != s.route && !(s.route == "" && s.Pods >= s.Replicas) {
				t.Fatalf("%d Pods are updated, and the routes lead %q, and it was to be: %s", w.seen.Workload.Updated, w.seen.Traffic.Routes, s)
			}
			w.approve()
		}
		w.wait()
		if w.status.Phase != v1beta1.RolloutPhaseHealthy || w.broken != "" {
			t.Fatalf("in the end it is %s, %s", w.status.Phase, w.broken)
		}
	})
}
