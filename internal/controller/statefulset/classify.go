package statefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// State is a Snapshot classified once: what the plan and the status both speak of.
type State struct {
	Snapshot
	selector labels.Selector
	strategy v1beta1.RollingUpdateStatefulSetStrategy
	limits   limits
	workload rollout.Workload
	// slots are the wanted ordinals, ascending; surplus are the Pods in none of them, the highest ordinal first.
	slots   []*slot
	surplus []*member
	// reach are the positions of the slots that are to be at the update revision, the first to update first.
	reach []int
	// down is the number of slots that are unavailable.
	down   int
	claims map[string]*corev1.PersistentVolumeClaim
	// adopt are Pods that become the StatefulSet's, and release those that its selector or its name do not fit any more.
	adopt, release []*corev1.Pod
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// limits are the numbers behind the spec's.
type limits struct {
	partition, maxUnavailable, scaleMaxUnavailable int
}

// member is a Pod of the StatefulSet.
type member struct {
	rollout.Member
	ordinal int32
	// fits means that the Pod's volumes are those of the claim templates, which no write to a Pod can change.
	fits bool
	// surplus means that the Pod is in no slot.
	surplus bool
}

// slot is a wanted ordinal.
type slot struct {
	position int
	ordinal  int32
	name     string
	// member is nil where there is no Pod.
	member *member
	// adopting means that a Pod of this name is about to be adopted.
	adopting bool
	// down means that the slot counts as unavailable, because of what was seen or of what this pass has planned.
	down bool
	// inReach means that the slot is to be at the update revision.
	inReach bool
}

// Classify classifies a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s, claims: map[string]*corev1.PersistentVolumeClaim{}}
	spec := &s.Set.Spec
	v.workload = rollout.Workload{
		Object: s.Set, Kind: kind(), Selector: spec.Selector, Lifecycle: spec.Lifecycle,
		MinReadySeconds: spec.MinReadySeconds, DeadlineSeconds: spec.ProgressDeadlineSeconds,
		OnDelete: spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		InPlace:  s.Options.InPlace, PullJobs: s.PullJobs, Taken: s.Taken, Now: s.Now,
	}
	for _, c := range s.Claims {
		v.claims[c.Name] = c
	}
	var reserved ordinal.Reserved
	if reserved, v.problem = v.readSpec(); v.problem != nil {
		return v
	}
	if v.inPlace() {
		v.workload.Template = &spec.Template
	}
	if v.workload.History, v.problem = readHistory(s, v.workload.Owner()); v.problem != nil {
		return v
	}
	v.fillSlots(reserved)
	v.reach, v.problem = ordinal.Reach(v.asSlots(updatedOf), v.order())
	for _, i := range v.reach {
		v.slots[i].inReach = true
	}
	return v
}

func (v *State) readSpec() (ordinal.Reserved, error) {
	spec := &v.Set.Spec
	var err error
	if v.selector, err = pod.Selector(spec.Selector); err != nil {
		return ordinal.Reserved{}, err
	}
	if v.replicas() > ordinal.MostReplicas {
		return ordinal.Reserved{}, fmt.Errorf("replicas is %d: a StatefulSet can have up to %d", v.replicas(), ordinal.MostReplicas)
	}
	if spec.UpdateStrategy.RollingUpdate != nil && !v.workload.OnDelete {
		v.strategy = *spec.UpdateStrategy.RollingUpdate
	}
	v.workload.Paused = v.strategy.Paused
	if n := v.strategy.MinReadySeconds; n != nil && *n > 0 {
		v.workload.MinReadySeconds = *n
	}
	if n := v.strategy.Partition; n != nil {
		v.limits.partition = max(int(*n), 0)
	}
	if v.limits.maxUnavailable, err = v.atLeastOne("updateStrategy.rollingUpdate.maxUnavailable", v.strategy.MaxUnavailable); err != nil {
		return ordinal.Reserved{}, err
	}
	v.limits.scaleMaxUnavailable = budget.Unlimited
	if s := spec.ScaleStrategy; s != nil && s.MaxUnavailable != nil {
		if v.limits.scaleMaxUnavailable, err = v.atLeastOne("scaleStrategy.maxUnavailable", s.MaxUnavailable); err != nil {
			return ordinal.Reserved{}, err
		}
	}
	return ordinal.Parse(spec.ReserveOrdinals)
}

// atLeastOne rounds a percentage of replicas down, but never to nothing: 20% of 3 is 1.
func (v *State) atLeastOne(field string, value *intstr.IntOrString) (int, error) {
	n, err := budget.Scaled(value, int(v.replicas()), budget.Down)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return max(n, 1), nil
}

func (v *State) replicas() int32 {
	if v.Set.Spec.Replicas == nil {
		return 1
	}
	return max(*v.Set.Spec.Replicas, 0)
}

func (v *State) inPlaceOnly() bool {
	return v.strategy.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdateStrategyType
}

func (v *State) inPlace() bool {
	return v.inPlaceOnly() || v.strategy.PodUpdatePolicy == v1beta1.InPlaceIfPossiblePodUpdateStrategyType
}

func (v *State) parallel() bool {
	return v.Set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

func (v *State) order() ordinal.Strategy {
	s := ordinal.Strategy{Partition: v.limits.partition}
	if u := v.strategy.UnorderedUpdate; u != nil && v.parallel() {
		s.Unordered, s.Priority = true, u.PriorityStrategy
	}
	if v.workload.OnDelete {
		s.Partition = 0
	}
	return s
}

// fillSlots puts the Pods into their slots.
func (v *State) fillSlots(reserved ordinal.Reserved) {
	start := int32(0)
	if o := v.Set.Spec.Ordinals; o != nil && v.Options.StartOrdinal {
		start = max(o.Start, 0)
	}
	split := pod.OwnershipOf(v.Set.UID, v.selector, append(slices.Clone(v.Pods), v.Orphans...))
	v.release, v.adopt = split.Release, split.Adoptable
	byName := map[string]*member{}
	for _, p := range split.Owned {
		if name, n, ok := ordinal.Split(p.Name); ok && name == v.Set.Name {
			byName[p.Name] = v.member(p, n)
		} else if p.DeletionTimestamp == nil {
			v.release = append(v.release, p)
		}
	}
	adopted := map[string]bool{}
	for _, p := range v.adopt {
		adopted[p.Name] = true
	}
	for i, n := range reserved.Slots(start, v.replicas()) {
		name := ordinal.PodName(v.Set.Name, n)
		s := &slot{position: i, ordinal: n, name: name, member: byName[name], adopting: adopted[name]}
		if s.member == nil || s.member.isDown() || v.waitsForClaims(s) {
			v.markDown(s)
		}
		delete(byName, name)
		v.slots = append(v.slots, s)
	}
	for _, m := range byName {
		m.surplus = true
		v.surplus = append(v.surplus, m)
	}
	slices.SortFunc(v.surplus, func(a, b *member) int { return cmp.Compare(b.ordinal, a.ordinal) })
}

// markDown notes that a slot is unavailable, because of what was seen or of what was planned.
func (v *State) markDown(s *slot) {
	if !s.down {
		s.down = true
		v.down++
	}
}

func (v *State) member(p *corev1.Pod, n int32) *member {
	m := &member{Member: v.workload.Classify(p), ordinal: n, fits: v.fits(p, n)}
	m.Available = m.Available && inplace.Progress(p, v.Options.InPlace).Done
	return m
}

// isDown reports whether the Pod counts as unavailable: whatever it still serves will be gone in a moment if it is leaving.
func (m *member) isDown() bool { return !m.Available || m.Leaving || m.Ended }

// isOutdated reports whether an update has something to change about the Pod.
func (m *member) isOutdated() bool { return !m.Updated || !m.fits }

// fits reports whether each claim template has its claim among the Pod's volumes.
func (v *State) fits(p *corev1.Pod, n int32) bool {
	for i := range v.Set.Spec.VolumeClaimTemplates {
		name := v.Set.Spec.VolumeClaimTemplates[i].Name
		wanted := claim.Name(name, v.Set.Name, strconv.Itoa(int(n)))
		if !slices.ContainsFunc(p.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.Name == name && volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == wanted
		}) {
			return false
		}
	}
	return true
}

func updatedOf(m *member) bool { return !m.isOutdated() }

// asSlots returns the slots as the order of updates needs them. isUpdated says which Pods count as updated.
func (v *State) asSlots(isUpdated func(*member) bool) []ordinal.Slot {
	out := make([]ordinal.Slot, len(v.slots))
	for i, s := range v.slots {
		if m := s.member; m != nil {
			out[i] = ordinal.Slot{Pod: m.Pod, Updated: isUpdated(m), Leaving: m.Leaving}
		}
	}
	return out
}

// pods returns all Pods of the StatefulSet.
func (v *State) pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, m := range v.members() {
		out = append(out, m.Pod)
	}
	return out
}

// workloadMembers returns the members as all workloads have them.
func (v *State) workloadMembers() []*rollout.Member {
	var out []*rollout.Member
	for _, m := range v.members() {
		out = append(out, &m.Member)
	}
	return out
}

func (v *State) members() []*member {
	var out []*member
	for _, s := range v.slots {
		if s.member != nil {
			out = append(out, s.member)
		}
	}
	return append(out, v.surplus...)
}

func readHistory(s Snapshot, owner metav1.OwnerReference) (revision.History, error) {
	return revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			return revision.New(revision.OwnerOf(s.Set, kind()), &s.Set.Spec.Template, collisionCount)
		},
		Same:           defaults.Equivalent,
		Owner:          owner,
		CollisionCount: s.Set.Status.CollisionCount,
		Current:        s.Set.Status.CurrentRevision,
	})
}
