package rolloutmanager

import (
	"strings"
	"testing"
)

func TestGates(t *testing.T) {
	cases := map[string]struct {
		text                  string
		keepPaused, histories bool
		problem               string
	}{
		"nothing is said":          {"", false, false, ""},
		"one is on":                {"RolloutHistory=true", false, true, ""},
		"two, with spaces":         {" KeepWorkloadPausedOnRolloutDeletion=true , RolloutHistory=false", true, false, ""},
		"one of the original":      {"AdvancedDeployment=true", false, false, ""},
		"one that nobody knows":    {"Foo=true", false, false, "no gate Foo; known are AdvancedDeployment, "},
		"one that says no boolean": {"RolloutHistory=maybe", false, false, `"RolloutHistory=maybe", want Name=true`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gates, err := (&Options{FeatureGates: tc.text}).gates()
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Fatalf("%v, want %s", err, tc.problem)
				}
				return
			}
			if err != nil || gates[keepPaused] != tc.keepPaused || gates[histories] != tc.histories {
				t.Errorf("%v, %v", gates, err)
			}
		})
	}
}
