package pods

import (
	"context"

	"github.com/seed-69ecc383/kruise/internal/rules/launch"
)

const (
	// maxBase and suffixLength are how the API server itself makes names: from as much of generateName, and so many random characters.
	maxBase      = 58
	suffixLength = 5
	// dryRunSuffix is at the end of a name that no Pod will have.
	dryRunSuffix = "xxxxx"
)

// LaunchOrder makes the containers of Pods that ask for it start in order of their priorities. The barrier that holds them back is named
// after the Pod, so that a Pod without a name gets one here, unless nothing will be stored. It must come after all steps that add
// containers. random returns a text of a length.
func LaunchOrder(random func(length int) string) Step {
	return Step{Name: "launch", Run: func(_ context.Context, s *Subject) error {
		p := s.Pod()
		priorities, err := launch.Wanted(p)
		switch {
		case err != nil:
			return Denied{err}
		case priorities == nil && !launch.HasBarrier(p):
			return nil
		case priorities == nil:
			launch.Hold(s.Edit(), "", nil)
			return nil
		}
		name := p.Name
		if name == "" {
			base := p.GenerateName
			if base == "" {
				return nil // the API server refuses a Pod without any name
			}
			name = base[:min(len(base), maxBase)] + dryRunSuffix
			if !s.DryRun {
				name = base[:min(len(base), maxBase)] + random(suffixLength)
				s.Edit().Name = name
			}
		}
		barrier, err := launch.BarrierName(name)
		if err != nil {
			return Denied{err}
		}
		launch.Hold(s.Edit(), barrier, priorities)
		return nil
	}}
}
