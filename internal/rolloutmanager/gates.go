package rolloutmanager

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Feature gates. Wire: they are in users' command lines.
const (
	// keepPaused has a release that is cut short, because its Rollout is disabled or deleted, leave its workload frozen.
	keepPaused = "KeepWorkloadPausedOnRolloutDeletion"
	// histories has each release recorded in a RolloutHistory.
	histories = "RolloutHistory"
)

// defaultGates are all gates that are known, and what they are by default. Those of the original that choose between mechanisms mean
// nothing here, where all is done in one safe way.
func defaultGates() map[string]bool {
	return map[string]bool{keepPaused: false, histories: false, "AdvancedDeployment": true, "MinReadySecondsStrategy": false}
}

// gates returns which gates are on.
func (o *Options) gates() (map[string]bool, error) {
	out := defaultGates()
	for _, gate := range strings.Split(o.FeatureGates, ",") {
		if strings.TrimSpace(gate) == "" {
			continue
		}
		name, text, _ := strings.Cut(gate, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--feature-gates: %q, want Name=true or Name=false", gate)
		}
		name = strings.TrimSpace(name)
		if _, known := out[name]; !known {
			return nil, fmt.Errorf("--feature-gates: there is no gate %s; known are %s", name,
				strings.Join(slices.Sorted(maps.Keys(out)), ", "))
		}
		out[name] = on
	}
	return out, nil
}
