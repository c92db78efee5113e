package uninstall

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestWhatAnObjectNeedsTheManagersFor(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, object, want string
	}{
		"a CloneSet with Pods":                         {"CloneSet", "{spec: {replicas: 3}, status: {replicas: 5}}", "Pods: 5"},
		"a CloneSet that has none yet":                 {"CloneSet", "{spec: {replicas: 3}}", "Pods: 3"},
		"one that says no number":                      {"StatefulSet", "{spec: {}}", "Pods: 1"},
		"one that is scaled to 0":                      {"StatefulSet", "{spec: {replicas: 0}, status: {replicas: 0}}", ""},
		"one whose last Pod is about to go":            {"UnitedDeployment", "{spec: {replicas: 0}, status: {replicas: 1}}", "Pods: 1"},
		"a DaemonSet":                                  {"DaemonSet", "{status: {desiredNumberScheduled: 4}}", "Pods: 4"},
		"a DaemonSet that no node fits":                {"DaemonSet", "{status: {desiredNumberScheduled: 0}}", ""},
		"a BroadcastJob that runs":                     {"BroadcastJob", "{status: {active: 2, succeeded: 3}}", "Pods: 2"},
		"a BroadcastJob that is done":                  {"BroadcastJob", "{status: {active: 0, succeeded: 3}}", ""},
		"a SidecarSet with Pods":                       {"SidecarSet", "{status: {matchedPods: 7}}", "Pods with its sidecars: 7"},
		"a SidecarSet that selects nothing":            {"SidecarSet", "{status: {matchedPods: 0}}", ""},
		"an AdvancedCronJob":                           {"AdvancedCronJob", "{spec: {schedule: '* * * * *'}}", "a schedule"},
		"an AdvancedCronJob that is paused":            {"AdvancedCronJob", "{spec: {paused: true}}", ""},
		"an AdvancedCronJob that is paused, with jobs": {"AdvancedCronJob", "{spec: {paused: true}, status: {active: [{name: a}]}}", "jobs that run: 1"},
		"a Rollout without a release":                  {"Rollout", "{status: {phase: Healthy}}", ""},
		"a Rollout with one":                           {"Rollout", "{status: {phase: Progressing}}", "phase Progressing"},
		"a Rollout that is being disabled":             {"Rollout", "{status: {phase: Disabling}}", "phase Disabling"},
		"a BatchRelease that is over":                  {"BatchRelease", "{status: {phase: Completed}}", ""},
		"a BatchRelease that is new":                   {"BatchRelease", "{spec: {}}", "phase not begun"},
		"a TrafficRouting in force":                    {"TrafficRouting", "{status: {phase: Progressing}}", "phase Progressing"},
		"a TrafficRouting that nobody uses":            {"TrafficRouting", "{status: {phase: Healthy}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(tc.object), &o); err != nil {
				t.Fatal(err)
			}
			for _, k := range append(Workloads(), Releases()...) {
				if k.kind != tc.kind {
					continue
				}
				if got := k.needs(integers(o)); got != tc.want {
					t.Errorf("needs the managers for %q, want %q", got, tc.want)
				}
				return
			}
			t.Errorf("%s is looked at by nobody", tc.kind)
		})
	}
}

// integers turns numbers into what the API server's answers are read as.
func integers(o map[string]any) map[string]any {
	for key, value := range o {
		switch value := value.(type) {
		case float64:
			o[key] = int64(value)
		case map[string]any:
			integers(value)
		}
	}
	return o
}
