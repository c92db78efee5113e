package rollout

import (
	"errors"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Failures returns what failed under a concern, in words; empty when nothing did.
func Failures(concern plan.Concern, p plan.Plan, done apply.Outcome) string {
	var failures []error
	for _, result := range done.Results {
		under := result.Action.Concern == concern || (concern == plan.Rollout && result.Action.Concern == plan.Settle)
		if under && apply.IsFailure(result.Err) {
			failures = append(failures, result.Err)
		}
	}
	for _, h := range p.Holds {
		if h.Failure == concern {
			failures = append(failures, errors.New(h.Why))
		}
	}
	const most = 3
	if len(failures) == 0 {
		return ""
	}
	return errors.Join(failures[:min(most, len(failures))]...).Error()
}
