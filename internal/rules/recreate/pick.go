package recreate

import (
	"cmp"
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Pick returns which of the requests of one Pod acts now, nil if none is left, and those that wait for it: the one under way, else the one that
// waits already, else the oldest.
func Pick(requests []*v1beta1.ContainerRecreateRequest) (acting *v1beta1.ContainerRecreateRequest, waiting []*v1beta1.ContainerRecreateRequest) {
	open := slices.DeleteFunc(slices.Clone(requests), func(r *v1beta1.ContainerRecreateRequest) bool {
		return IsCompleted(r) || r.DeletionTimestamp != nil
	})
	if len(open) == 0 {
		return nil, nil
	}
	slices.SortFunc(open, func(a, b *v1beta1.ContainerRecreateRequest) int {
		return cmp.Or(
			cmp.Compare(turn(a.Status.Phase), turn(b.Status.Phase)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return open[0], open[1:]
}

func turn(p v1beta1.ContainerRecreateRequestPhase) int {
	switch p {
	case v1beta1.ContainerRecreateRequestRecreating:
		return 0
	case v1beta1.ContainerRecreateRequestPending:
		return 1
	default:
		return 2
	}
}
