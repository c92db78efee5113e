package features

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Set says which gates are on. The zero value has all gates off; Parse makes one with the defaults.
type Set struct {
	on map[Gate]bool
}

// Enabled reports whether the gate is on.
func (s Set) Enabled(g Gate) bool { return s.on[g] }

// String returns every gate that is on, in alphabetic order, joined by commas.
func (s Set) String() string {
	var names []string
	for gate, on := range s.on {
		if on {
			names = append(names, string(gate))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// Sources are the two places that gates are set in.
type Sources struct {
	// Flag is the value of --feature-gates: Name=true|false pairs, joined by commas. AllAlpha and AllBeta set every gate of that stage
	// which is not named itself.
	Flag string
	// CustomResources is the value of the environment variable CUSTOM_RESOURCE_ENABLE: the kinds that are served, joined by commas. A list
	// without SidecarSet turns PodWebhook off. Empty for all kinds.
	CustomResources string
}

// Parse returns the gates as they are after the flag, and after those that force others have done so. An unknown name, and a value that
// is not a boolean, are errors.
func Parse(s Sources) (Set, error) {
	asked, err := parseFlag(s.Flag)
	if err != nil {
		return Set{}, err
	}
	on := map[Gate]bool{}
	for _, known := range specs() {
		on[known.gate] = known.on
		if all, set := asked[Gate(known.stage)]; set {
			on[known.gate] = all
		}
		if own, set := asked[known.gate]; set {
			on[known.gate] = own
		}
	}
	if s.CustomResources != "" && !slices.Contains(strings.Split(s.CustomResources, ","), "SidecarSet") {
		on[PodWebhook] = false
	}
	force(on)
	return Set{on: on}, nil
}

// force switches gates on that others need, and then, because a missing foundation cannot be wished away, those off that lack theirs.
func force(on map[Gate]bool) {
	if on[PreDownloadImageForInPlaceUpdate] || on[PreDownloadImageForDaemonSetUpdate] {
		on[ImagePullJobGate] = true
	}
	for base, dependents := range needs() {
		if on[base] {
			continue
		}
		for _, dependent := range dependents {
			on[dependent] = false
		}
	}
}

func parseFlag(flag string) (map[Gate]bool, error) {
	known := map[Gate]bool{Gate(alpha): true, Gate(beta): true}
	for _, s := range specs() {
		known[s.gate] = true
	}
	asked := map[Gate]bool{}
	for pair := range strings.SplitSeq(flag, ",") {
		pair = strings.TrimSpace(pair)
		if pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		gate := Gate(strings.TrimSpace(name))
		if !found {
			return nil, fmt.Errorf("feature gate %q has no value, write %s=true or %s=false", name, gate, gate)
		}
		if !known[gate] {
			return nil, fmt.Errorf("unknown feature gate %q, known are %s", gate, strings.Join(names(), ", "))
		}
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("feature gate %s=%s: the value is neither true nor false", gate, value)
		}
		asked[gate] = on
	}
	return asked, nil
}

func names() []string {
	all := []string{string(alpha), string(beta)}
	for _, s := range specs() {
		all = append(all, string(s.gate))
	}
	slices.Sort(all)
	return all
}
