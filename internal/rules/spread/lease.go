package spread

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

const (
	// LeaseFor is how long room that a manager has set aside may be given to Pods. What is given last has the rest of CreatingFor to be
	// seen.
	LeaseFor = 5 * time.Second
	// LeaseIdle is how long it is kept while no Pod asks for it.
	LeaseIdle = time.Second
	// maxAhead is the most room that is set aside at once.
	maxAhead = 64
	// keep is the share of the room that is left to others: of less than so many Pods, nothing is set aside.
	keep = 4
)

// Lease is how much room one write takes.
type Lease struct {
	// Now is for the Pods that wait, Ahead for those to come.
	Now, Ahead int32
}

// NextLease returns how much to take of a room for so many Pods that wait, after a lease that took lastAhead so long ago. What is set aside
// doubles from write to write while Pods keep coming, from none, and is never more than a quarter of what is left: the last places are
// taken one by one. An unlimited room is of no concern here.
//
// Example: Pods come all the time, and the room is 100. Leases of 1, 1+1, 1+2, 1+4 and so on leave 99, 97, 94, 89 and so on. At a room of 3
// nothing is set aside any more.
func NextLease(room, waiting, lastAhead int32, sinceLast time.Duration) Lease {
	now := min(room, max(waiting, 1))
	if sinceLast > 2*LeaseIdle {
		return Lease{Now: now}
	}
	ahead := min(max(1, 2*lastAhead), maxAhead, (room-now)/keep)
	return Lease{Now: now, Ahead: max(0, ahead)}
}

// IsScarce reports whether room that is set aside is to be given back at once, because others may wait for it.
func IsScarce(room, held int32) bool { return room != Unlimited && room < held }

// leasePrefix begins the entries of room that was set aside.
const leasePrefix = "lease-"

// LeaseEntry returns the name of an entry of room that is set aside for Pods to come.
func LeaseEntry(id string) string { return leasePrefix + id }

func isLease(entry string) bool { return strings.HasPrefix(entry, leasePrefix) }

// Leased returns the entries of room in a subset that managers have set aside a short while ago, of all versions, sorted: they may have
// been given to Pods since, or may yet be given back.
func Leased(s *v1beta1.WorkloadSpread, subset string, now time.Time) []string {
	var out []string
	status := statusOf(s.Status.SubsetStatuses, subset)
	if status == nil {
		return nil
	}
	for _, entry := range slices.Sorted(maps.Keys(status.CreatingPods)) {
		if isLease(entry) && now.Sub(status.CreatingPods[entry].Time) <= LeaseFor {
			out = append(out, entry)
		}
	}
	return out
}
