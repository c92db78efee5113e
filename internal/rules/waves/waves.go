// Package waves decides which subsets of a workload get a new template now, and how many Pods of each may be out of service for it.
//
// Waves are groups of subsets in order: the next begins when the one before is updated and available, and when the user has continued a
// pause between them. Share divides one budget among the subsets that are open, each of which has a controller of its own that keeps to
// the limit in its spec.
package waves

import "slices"

// Wave is a group of subsets that are updated together.
type Wave struct {
	Name    string
	Subsets []string
	// Pause holds the waves after it until the user continues.
	Pause bool
}

// Progress is how far a subset has come with the newest template.
type Progress struct {
	Name string
	// Done means that all its Pods that are to be updated are, and that all are available.
	Done bool
	// Away subsets can't be reached. Nobody waits for them.
	Away bool
}

// Stage is how far a rollout has come.
type Stage struct {
	// Wave is the name of the wave under way; empty once all waves are done.
	Wave string
	// Open are the subsets that get the newest template.
	Open map[string]bool
	// Paused means that the wave is done, and that the ones after it wait for the user.
	Paused bool
	// Waiting are the subsets of the wave that are not done, in order.
	Waiting []string
}

// Order returns how far a rollout has come. Subsets of no wave come after all waves. continued is the name of the last wave whose pause is
// over, which ends also those before it; empty for none.
//
// With the waves {a}, a pause, {b}, and c of no wave: a alone until it is done; still a alone until a's wave is continued; then a and b;
// then all.
func Order(waves []Wave, subsets []Progress, continued string) Stage {
	s := Stage{Open: map[string]bool{}}
	passed := slices.IndexFunc(waves, func(w Wave) bool { return w.Name == continued })
	isHeld := func(p Progress) bool { return !s.Open[p.Name] && !p.Done }
	for at, w := range waves {
		s.Wave = w.Name
		for _, name := range w.Subsets {
			s.Open[name] = true
		}
		for _, p := range subsets {
			if slices.Contains(w.Subsets, p.Name) && !p.Done && !p.Away {
				s.Waiting = append(s.Waiting, p.Name)
			}
		}
		if len(s.Waiting) > 0 {
			return s
		}
		if w.Pause && at > passed && slices.ContainsFunc(subsets, isHeld) {
			s.Paused = true
			return s
		}
	}
	s.Wave = ""
	for _, p := range subsets {
		s.Open[p.Name] = true
	}
	return s
}
