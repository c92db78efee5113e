package uniteddeployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/placement"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/waves"
)

// State is a Snapshot, classified once for the plan and the status.
type State struct {
	Snapshot
	// kind is that of the workloads by the template; nil when it makes none.
	kind    *workloadKind
	history revision.History
	// total is the number of Pods wanted.
	total int32
	// subsets are those of the spec, in its order.
	subsets []*subset
	// surplus are workloads of no subset, and those that a subset has twice.
	surplus []*member
	// adjusted and unplaced say how the division differs from what the user wants, as in placement.Division.
	adjusted string
	unplaced int32
	// adaptive and reserving say what becomes of Pods that can't be scheduled.
	adaptive, reserving bool
	// stage is how far the rollout has come in waves, and budget the most Pods that may be unavailable for it; 0 for no limit.
	stage  waves.Stage
	budget int32
	// wait is the time until the answer changes by itself; zero if it does not.
	wait time.Duration
	// records are the clusters that hold, or may hold, workloads, as the status is to say.
	records []v1beta1.MemberCluster
	// problem is what can't be read in the spec.
	problem error
}

// subset is a subset of the spec.
type subset struct {
	*v1beta1.Subset
	// now is its workload; nil where it has none. former are its workloads of other kinds.
	now    *member
	former []*member
	// replicas is the number of Pods that it is to have, and partition how many of them stay at their old template.
	replicas, partition int32
	// keeps is what waves or the budget have it keep of its present workload, and limit its part of the budget; nil where there is none.
	keeps kept
	limit *limit
	// share is what of the budget it may use by what was written before or is written now.
	share int32
	// reserved is the number of Pods that are reserved, and marks what is to be written on Pods for that.
	reserved int32
	marks    []mark
	// stuck is the number of Pods that no node takes. condition is Schedulable as it is to be; without a status for none.
	stuck     int32
	condition v1beta1.UnitedDeploymentSubsetCondition
	before    v1beta1.UnitedDeploymentSubsetStatus
	// elsewhere is about the cluster that it is in; nil for that of the UnitedDeployment.
	elsewhere *elsewhere
}

// member is a workload that the UnitedDeployment controls.
type member struct {
	Workload
	kind workloadKind
	progress
	// specified is the number of replicas in its spec.
	specified int32
	counts
}

// counts are numbers of Pods that are neither finished nor being deleted.
type counts struct {
	active, updated, updatedReady int32
	// firstFree is one more than the highest number of a ready Pod, where Pods are numbered; else 0.
	firstFree int32
}

// Classify returns the state of a snapshot.
func Classify(s Snapshot) (State, error) {
	v := State{Snapshot: s, kind: kindOf(&s.Set.Spec.Template), total: valueOr(s.Set.Spec.Replicas, 1)}
	strategy := s.Set.Spec.Topology.ScheduleStrategy
	v.adaptive = strategy.Type == v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType
	v.reserving = v.adaptive && strategy.Adaptive != nil && strategy.Adaptive.ReserveUnschedulablePods
	if v.kind == nil || s.Set.DeletionTimestamp != nil {
		v.leave()
		return v, nil
	}
	var err error
	if v.history, err = historyOf(s); err != nil {
		return v, err
	}
	v.assign()
	for _, one := range v.subsets {
		v.judge(one)
	}
	v.divide()
	v.stageRollout()
	v.records = v.recorded()
	return v, nil
}

// historyOf finds the revision of the template among those that are stored.
func historyOf(s Snapshot) (revision.History, error) {
	owner := revision.OwnerOf(s.Set, kind())
	owner.Labels, owner.Annotations = labelsOf(&s.Set.Spec.Template), nil
	return revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			data, err := revision.SubsetData(&s.Set.Spec.Template)
			if err != nil {
				return nil, fmt.Errorf("making the revision of the template: %w", err)
			}
			return revision.Of(owner, data, collisionCount), nil
		},
		Owner: owner.Reference, CollisionCount: s.Set.Status.CollisionCount, Current: s.Set.Status.CurrentRevision,
	})
}

func labelsOf(template *v1beta1.SubsetTemplate) map[string]string {
	if k := kindOf(template); k != nil {
		return k.make(template).GetLabels()
	}
	return nil
}

// assign finds the subset of each workload. The label of a workload can be changed, its selector can't.
func (v *State) assign() {
	bySubset := map[string]*subset{}
	for i := range v.Set.Spec.Topology.Subsets {
		one := &subset{Subset: &v.Set.Spec.Topology.Subsets[i]}
		for _, status := range v.Set.Status.SubsetStatuses {
			if status.Name == one.Name {
				one.before = status
			}
		}
		v.locate(one)
		bySubset[one.Name] = one
		v.subsets = append(v.subsets, one)
	}
	var members []*member
	for _, w := range v.Workloads {
		if m := v.memberOf(w); m != nil {
			members = append(members, m)
		}
	}
	// Of two, the one that serves the most stays, then the older one.
	slices.SortStableFunc(members, func(a, b *member) int {
		created, other := a.Object.GetCreationTimestamp(), b.Object.GetCreationTimestamp()
		return cmp.Or(cmp.Compare(b.ready, a.ready), created.Compare(other.Time), strings.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	for _, m := range members {
		one := bySubset[m.subsetName()]
		switch {
		case one == nil || m.Cluster != one.place():
			v.surplus = append(v.surplus, m)
		case m.kind.gvk != v.kind.gvk:
			one.former = append(one.former, m)
		case one.now != nil:
			v.surplus = append(v.surplus, m)
		default:
			one.now = m
		}
	}
}

// memberOf returns a workload with what it tells of itself; nil for one that is being deleted.
func (v *State) memberOf(w Workload) *member {
	if w.Object.GetDeletionTimestamp() != nil {
		return nil
	}
	for _, k := range workloadKinds() {
		if sameType(k, w.Object) {
			m := &member{Workload: w, kind: k, progress: k.progress(w.Object)}
			m.specified = valueOr(*k.fields(w.Object).replicas, 1)
			m.counts = v.count(m)
			return m
		}
	}
	return nil
}

func (m *member) subsetName() string {
	if selector := *m.kind.fields(m.Object).selector; selector != nil && selector.MatchLabels[keys.SubsetName] != "" {
		return selector.MatchLabels[keys.SubsetName]
	}
	return m.Object.GetLabels()[keys.SubsetName]
}

// count counts the Pods of a workload. A Pod is updated if it has the template of the newest revision, and the workload calls no fewer
// Pods updated: the patch of a subset is no part of the revision.
func (v *State) count(m *member) (c counts) {
	if v.history.Update == nil {
		return c // of a UnitedDeployment that is being deleted
	}
	for _, p := range m.Pods {
		if !pod.IsActive(p) {
			continue
		}
		c.active++
		ready := pod.IsReady(p)
		if p.Labels[keys.SubsetRevision] == v.history.Update.Name {
			c.updated++
			if ready {
				c.updatedReady++
			}
		}
		if number, ok := numberOf(p.Name); ready && ok && m.kind.fields(m.Object).numbered {
			c.firstFree = max(c.firstFree, number+1)
		}
	}
	if m.observed {
		c.updated = min(c.updated, m.progress.updated)
	}
	c.updatedReady = min(c.updatedReady, c.updated)
	return c
}

// divide divides the Pods among the subsets.
func (v *State) divide() {
	d := placement.Demand{Total: v.total, Adaptive: v.adaptive && !v.reserving, Reserve: v.reserving}
	for _, one := range v.subsets {
		d.Subsets = append(d.Subsets, v.demandOf(one))
		d.Reserve = d.Reserve || v.isReallocated(one)
	}
	out, err := placement.Divide(d)
	if err != nil {
		v.problem = fmt.Errorf("spec.topology.subsets: %w", err)
		return
	}
	v.keepShares(d, &out)
	v.adjusted, v.unplaced = out.Adjusted, out.Unplaced
	for i, one := range v.subsets {
		one.replicas = out.Replicas[i]
	}
	v.keepSurplus()
	for _, one := range v.subsets {
		one.partition = v.partitionOf(one)
		v.remark(one)
	}
}

// partitionOf returns how many Pods of a subset stay at their old template.
func (v *State) partitionOf(one *subset) int32 {
	manual := v.Set.Spec.UpdateStrategy.ManualUpdate
	if manual == nil {
		return 0
	}
	return max(min(manual.Partitions[one.Name], one.replicas), 0)
}

// demandOf returns what the division has to know of a subset.
func (v *State) demandOf(one *subset) placement.Subset {
	out := placement.Subset{Name: one.Name, Replicas: one.Replicas, Min: one.MinReplicas, Max: one.MaxReplicas}
	if one.isAway() {
		return v.demandOfAway(one, out)
	}
	now := one.now
	if now == nil && len(one.former) > 0 {
		now = one.former[0]
	}
	if now == nil {
		out.Marked = one.isMarked() || v.isLateComer(one)
		return out
	}
	out.Current, out.Ready = now.specified, now.ready
	if now.isEdited() && one.before.Name != "" {
		out.Current = one.before.Replicas // what somebody else has written does not count
	}
	out.Ready = max(out.Ready, now.firstFree)
	if !v.adaptive {
		return out
	}
	out.Marked, out.Reserved = one.isMarked(), one.reserved
	out.Unschedulable = one.condition.Status == corev1.ConditionFalse
	if v.reserving {
		out.Unschedulable = one.reserved > 0
		// Pods that are not there yet are reserved when they come.
		out.Reserved = max(one.reserved, out.Current-(now.active-one.reserved))
	}
	return out
}

// isMarked reports whether the subset could not be scheduled when the status was last written.
func (s *subset) isMarked() bool { return s.schedulable().Status == corev1.ConditionFalse }

// schedulable returns the condition as it was last written.
func (s *subset) schedulable() v1beta1.UnitedDeploymentSubsetCondition {
	return s.told(v1beta1.UnitedDeploymentSubsetSchedulable)
}

// told returns a condition as it was last written; without a status if there was none.
func (s *subset) told(t v1beta1.UnitedDeploymentSubsetConditionType) v1beta1.UnitedDeploymentSubsetCondition {
	for _, c := range s.before.Conditions {
		if c.Type == t {
			return c
		}
	}
	return v1beta1.UnitedDeploymentSubsetCondition{Type: t}
}

// isLateComer reports whether a subset without a workload comes to others that have theirs: with reservation, what it gets then counts only
// once it runs.
func (v *State) isLateComer(one *subset) bool {
	return v.reserving && slices.ContainsFunc(v.subsets, func(other *subset) bool {
		return other != one && (other.now != nil && other.now.active > 0 || len(other.former) > 0)
	})
}

// recheck asks for another look after a time, the soonest of several.
func (v *State) recheck(wait time.Duration) {
	if wait > 0 && (v.wait == 0 || wait < v.wait) {
		v.wait = wait
	}
}
