package member

import "k8s.io/apimachinery/pkg/types"

// Workload is a workload of the hub's in another cluster.
type Workload struct {
	Kind, Namespace, Name string
	UID                   types.UID
	ResourceVersion       string
	// Owner is the UID of the UnitedDeployment that it was made for, and OwnerName its name.
	Owner     types.UID
	OwnerName types.NamespacedName
}

// Known says what the hub knows of owners.
type Known struct {
	// Exists are owners that the API server of the hub, not a cache, has, and that want something in the cluster.
	Exists map[types.UID]bool
	// Tombstone are owners that have left behind what is in the cluster when it did not answer.
	Tombstone map[types.UID]bool
	// Allowed is how many workloads a person allows to be deleted in one pass.
	Allowed int
}

// The most workloads of one cluster that one pass may delete: five, or a fifth of them if that is more. A hub whose storage was restored
// knows little of what its clusters run.
const (
	alwaysSwept = 5
	sweptShare  = 5
)

// SweepLimit returns how many of a number of workloads one pass may delete at most: 5 of 10, 20 of 100.
func SweepLimit(found int) int { return max(alwaysSwept, found/sweptShare) }

// Sweep returns the workloads that are to be deleted: nobody in the hub wants them. If they are more than may be deleted in one pass,
// exceeded is how many they are, and none is returned.
func Sweep(found []Workload, hub Known) (remove []Workload, exceeded int) {
	for _, w := range found {
		if hub.Tombstone[w.Owner] || !hub.Exists[w.Owner] {
			remove = append(remove, w)
		}
	}
	if len(remove) > max(SweepLimit(len(found)), hub.Allowed) {
		return nil, len(remove)
	}
	return remove, 0
}
