package spread

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

const (
	// CreatingFor is how long room is kept for a Pod that has not been seen.
	CreatingFor = 30 * time.Second
	// DeletingFor is how long a Pod is expected to go, after somebody has said so.
	DeletingFor = 15 * time.Second
)

// statusOf returns the status of a subset; nil if there is none.
func statusOf(all []v1beta1.WorkloadSpreadSubsetStatus, subset string) *v1beta1.WorkloadSpreadSubsetStatus {
	for i := range all {
		if all[i].Name == subset {
			return &all[i]
		}
	}
	return nil
}

func schedulable(s *v1beta1.WorkloadSpreadSubsetStatus) *metav1.Condition {
	if s == nil {
		return nil
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == v1beta1.SubsetSchedulable {
			return &s.Conditions[i]
		}
	}
	return nil
}

// roomIn returns the room that a ledger leaves of a limit.
func roomIn(limit int32, used int) int32 {
	if limit == Unlimited {
		return Unlimited
	}
	return int32(max(0, int(limit)-used))
}

// used returns how many Pods of a limit a ledger takes.
func used(s *v1beta1.WorkloadSpreadSubsetStatus) int {
	if s == nil {
		return 0
	}
	return int(s.Replicas) + len(s.CreatingPods) - len(s.DeletingPods)
}

// Counts returns how many Pods each subset has or is given, as far as they count for a new Pod of a version. Total is the number of Pods
// that the workload is to have: where versions count only during a surge, they count if there are as many Pods already.
func Counts(s *v1beta1.WorkloadSpread, version string, total int32) []int {
	versions := []string{version}
	if SurgesOnly(TargetOf(s).GroupKind) && !isSurging(s, total) {
		versions = slices.Collect(maps.Keys(s.Status.VersionedSubsetStatuses))
	}
	out := make([]int, len(s.Spec.Subsets))
	for i := range out {
		for _, v := range versions {
			out[i] += used(statusOf(s.Status.VersionedSubsetStatuses[v], s.Spec.Subsets[i].Name))
		}
	}
	return out
}

// Rooms returns the room in each subset for a new Pod of a version; none in those that take no Pods now. The limits are those of the
// present spec, of which the status may not know yet.
func Rooms(s *v1beta1.WorkloadSpread, limits []int32, version string, total int32) []int32 {
	out, open := make([]int32, len(limits)), Open(s)
	for i, has := range Counts(s, version, total) {
		if open[i] {
			out[i] = roomIn(limits[i], has)
		}
	}
	return out
}

// RoomIn returns the room that the ledger of a place leaves.
func RoomIn(s *v1beta1.WorkloadSpread, limits []int32, at Place) int32 {
	i := IndexOf(s, at.Subset)
	if i < 0 || i >= len(limits) {
		return 0
	}
	return roomIn(limits[i], used(statusOf(s.Status.VersionedSubsetStatuses[at.Version], at.Subset)))
}

func isSurging(s *v1beta1.WorkloadSpread, total int32) bool {
	all := 0
	for _, statuses := range s.Status.VersionedSubsetStatuses {
		for i := range statuses {
			all += used(&statuses[i])
		}
	}
	return all >= int(total)
}

// Present returns how many Pods there are by the ledger: of a version, or of all where versions count only during a surge. Room that was
// set aside is taken for a Pod for as long as it may be given to one.
func Present(s *v1beta1.WorkloadSpread, version string, now time.Time) int {
	all := 0
	for v, statuses := range s.Status.VersionedSubsetStatuses {
		if v != version && !SurgesOnly(TargetOf(s).GroupKind) {
			continue
		}
		for i := range statuses {
			all += int(statuses[i].Replicas) - len(statuses[i].DeletingPods)
			for entry, since := range statuses[i].CreatingPods {
				if !isLease(entry) || now.Sub(since.Time) <= LeaseFor {
					all++
				}
			}
		}
	}
	return all
}

// Take enters creations of a version into the ledger of a subset.
func Take(s *v1beta1.WorkloadSpread, limits []int32, at Place, entries map[string]metav1.Time) {
	status := entryOf(s, at)
	if status.CreatingPods == nil {
		status.CreatingPods = map[string]metav1.Time{}
	}
	maps.Copy(status.CreatingPods, entries)
	total(s, limits)
}

// GiveBack takes entries out of the ledger that no Pod was given, and reports whether there were any.
func GiveBack(s *v1beta1.WorkloadSpread, limits []int32, at Place, entries []string) bool {
	status := statusOf(s.Status.VersionedSubsetStatuses[at.Version], at.Subset)
	if status == nil {
		return false
	}
	before := len(status.CreatingPods)
	for _, entry := range entries {
		delete(status.CreatingPods, entry)
	}
	if len(status.CreatingPods) == before {
		return false
	}
	if len(status.CreatingPods) == 0 {
		status.CreatingPods = nil
	}
	total(s, limits)
	return true
}

// Place is where a Pod is counted.
type Place struct{ Version, Subset string }

// entryOf returns the ledger of a place, which is made if it is missing.
func entryOf(s *v1beta1.WorkloadSpread, at Place) *v1beta1.WorkloadSpreadSubsetStatus {
	if s.Status.VersionedSubsetStatuses == nil {
		s.Status.VersionedSubsetStatuses = map[string][]v1beta1.WorkloadSpreadSubsetStatus{}
	}
	statuses := s.Status.VersionedSubsetStatuses[at.Version]
	for i := range s.Spec.Subsets {
		if name := s.Spec.Subsets[i].Name; statusOf(statuses, name) == nil {
			statuses = append(statuses, v1beta1.WorkloadSpreadSubsetStatus{Name: name})
		}
	}
	s.Status.VersionedSubsetStatuses[at.Version] = statuses
	return statusOf(statuses, at.Subset)
}

// Expire takes out of the ledger what has waited too long, and returns it. Next is how long it takes until more of it has; 0 if nothing
// waits.
func Expire(s *v1beta1.WorkloadSpread, now time.Time) (creating, deleting []string, next time.Duration) {
	prune := func(entries map[string]metav1.Time, lasts time.Duration) (left map[string]metav1.Time, gone []string) {
		for name, at := range entries {
			if wait := at.Add(lasts).Sub(now); wait <= 0 {
				gone = append(gone, name)
			} else if next == 0 || wait < next {
				next = wait
			}
		}
		if len(gone) == 0 {
			return entries, nil
		}
		left = maps.Clone(entries)
		for _, name := range gone {
			delete(left, name)
		}
		if len(left) == 0 {
			left = nil
		}
		return left, gone
	}
	for _, statuses := range s.Status.VersionedSubsetStatuses {
		for i := range statuses {
			var gone []string
			statuses[i].CreatingPods, gone = prune(statuses[i].CreatingPods, CreatingFor)
			creating = append(creating, gone...)
			statuses[i].DeletingPods, gone = prune(statuses[i].DeletingPods, DeletingFor)
			deleting = append(deleting, gone...)
		}
	}
	slices.Sort(creating)
	slices.Sort(deleting)
	return creating, deleting, next
}

// Recount writes what the Pods come to into the status. The Pods are all that name the WorkloadSpread, as new as podVersion says. Gone are
// the entries of Pods that were seen and are there no more; it may be nil.
func Recount(s *v1beta1.WorkloadSpread, limits []int32, pods []*corev1.Pod, gone map[string]bool) {
	before := s.Status.VersionedSubsetStatuses
	s.Status.VersionedSubsetStatuses = nil
	kind := TargetOf(s).GroupKind
	seen := map[string]*corev1.Pod{}
	active := map[string]bool{}
	for _, p := range pods {
		m, ok := MatchedOf(p)
		if !ok || m.Name != s.Name {
			continue
		}
		if m.UID != "" {
			seen[m.UID] = p
		}
		if pod.IsActive(p) {
			active[p.Name] = true
			if IndexOf(s, m.Subset) >= 0 {
				entryOf(s, Place{VersionOf(kind, p), m.Subset}).Replicas++
			}
		}
	}
	for version, statuses := range before {
		for i := range statuses {
			if IndexOf(s, statuses[i].Name) >= 0 {
				carryOver(s, Place{version, statuses[i].Name}, &statuses[i], facts{seen, active, gone})
			}
		}
	}
	total(s, limits)
}

// facts are what is seen of Pods: by the entries that they took room by, the names of those that are active, and the entries of those that
// are gone.
type facts struct {
	byEntry      map[string]*corev1.Pod
	active, gone map[string]bool
}

// carryOver takes over what waits in the ledger of a place: creations that are not seen, and Pods that are expected to go and are there.
func carryOver(s *v1beta1.WorkloadSpread, at Place, before *v1beta1.WorkloadSpreadSubsetStatus, f facts) {
	creating := map[string]metav1.Time{}
	for entry, since := range before.CreatingPods {
		if p := f.byEntry[entry]; p != nil {
			s.Status.PodVersion = newer(s.Status.PodVersion, p.ResourceVersion)
			continue
		}
		if !f.gone[entry] {
			creating[entry] = since
		}
	}
	deleting := map[string]metav1.Time{}
	for name, since := range before.DeletingPods {
		if f.active[name] {
			deleting[name] = since
		}
	}
	if len(creating) > 0 {
		entryOf(s, at).CreatingPods = creating
	}
	if len(deleting) > 0 {
		entryOf(s, at).DeletingPods = deleting
	}
}

// newer returns the newer one of two resource versions, of which the first may be empty.
func newer(a, b string) string {
	if a == "" {
		return b
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order < 0 {
		return b
	}
	return a
}

// total computes what follows from the ledgers of all versions: the room in each, and their sum.
// Limits of another spec say nothing: the next count knows better.
func total(s *v1beta1.WorkloadSpread, limits []int32) {
	if len(limits) != len(s.Spec.Subsets) {
		return
	}
	before := s.Status.SubsetStatuses
	s.Status.SubsetStatuses = make([]v1beta1.WorkloadSpreadSubsetStatus, len(s.Spec.Subsets))
	sums := s.Status.SubsetStatuses
	for i := range s.Spec.Subsets {
		sums[i].Name = s.Spec.Subsets[i].Name
		if was := statusOf(before, sums[i].Name); was != nil {
			sums[i].Conditions = was.Conditions
		}
	}
	for version, statuses := range s.Status.VersionedSubsetStatuses {
		ordered := make([]v1beta1.WorkloadSpreadSubsetStatus, len(sums))
		for i := range sums {
			ordered[i].Name = sums[i].Name
			if one := statusOf(statuses, sums[i].Name); one != nil {
				ordered[i] = *one
			}
			ordered[i].MissingReplicas = roomIn(limits[i], used(&ordered[i]))
			sums[i].Replicas += ordered[i].Replicas
			sums[i].CreatingPods = union(sums[i].CreatingPods, ordered[i].CreatingPods)
			sums[i].DeletingPods = union(sums[i].DeletingPods, ordered[i].DeletingPods)
		}
		s.Status.VersionedSubsetStatuses[version] = ordered
	}
	for i := range sums {
		sums[i].MissingReplicas = roomIn(limits[i], used(&sums[i]))
	}
}

func union(a, b map[string]metav1.Time) map[string]metav1.Time {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(b)
	maps.Copy(out, a)
	return out
}

// IsAsNewAs reports whether whoever has seen Pods up to a resource version has seen as much as podVersion says.
func IsAsNewAs(seen string, s *v1beta1.WorkloadSpread) bool {
	if s.Status.PodVersion == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(seen, s.Status.PodVersion)
	return err == nil && order >= 0
}
