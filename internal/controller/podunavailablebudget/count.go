package podunavailablebudget

import (
	"context"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// Count computes the numbers of a budget anew, for whoever judges a request before the controller has come to it. surplus says that there are more
// Pods than there should be, so that deletions are judged by disruption.Counts.ForSurplus.
func (v Surveyor) Count(ctx context.Context, r observe.Reader, b *v1beta1.PodUnavailableBudget) (counts disruption.Counts, surplus bool, err error) {
	s, err := v.Observe(ctx, r, b)
	if err != nil {
		return disruption.Counts{}, false, err
	}
	counts, err = s.judge()
	return counts, s.IsSurplus(), err
}
