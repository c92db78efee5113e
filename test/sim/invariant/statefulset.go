package invariant

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckStatefulSet knows besides those of CloneSets.
const (
	RuleOrdinal = "no Pod but with a wanted ordinal"
	RuleOrder   = "no step under OrderedReady before the one below it is done"
	RuleKeep    = "no claim goes that the retention policy keeps"
)

// numberedSets is the history of StatefulSets and their Pods up to a change.
type numberedSets struct {
	sets       map[types.UID][]dated[*v1beta1.StatefulSet]
	pods       map[types.UID]*life
	of         map[types.UID][]*life
	owner      map[types.UID]types.UID
	revisions  map[string]types.UID
	violations []Violation
}

// CheckStatefulSet returns the promises that a StatefulSet controller has broken in a history.
func CheckStatefulSet(history []simulate.Change) []Violation {
	l := &numberedSets{
		sets: map[types.UID][]dated[*v1beta1.StatefulSet]{}, pods: map[types.UID]*life{}, of: map[types.UID][]*life{},
		owner: map[types.UID]types.UID{}, revisions: map[string]types.UID{},
	}
	for _, c := range history {
		l.record(c)
		if c.Pass != nil && !c.Late {
			l.judge(c)
		}
	}
	return l.violations
}

func (l *numberedSets) record(c simulate.Change) {
	object := eitherOf(c)
	switch c.Key.Kind.Kind {
	case "ControllerRevision":
		delete(l.revisions, c.Key.Name)
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil && c.After != nil {
			l.revisions[c.Key.Name] = owner.UID
		}
	case "StatefulSet":
		after, _ := c.After.(*v1beta1.StatefulSet)
		l.sets[object.GetUID()] = append(l.sets[object.GetUID()], dated[*v1beta1.StatefulSet]{c.Revision, c.Time, c.Pass, c.Late, after})
	case "Pod":
		after, _ := c.After.(*corev1.Pod)
		known := l.pods[object.GetUID()]
		if known == nil {
			known = &life{late: c.Late}
			l.pods[object.GetUID()] = known
		}
		// A Pod may be let go and adopted by another StatefulSet of the same name.
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
			l.owner[object.GetUID()] = owner.UID
			if !slices.Contains(l.of[owner.UID], known) {
				l.of[owner.UID] = append(l.of[owner.UID], known)
			}
		}
		known.versions = append(known.versions, dated[*corev1.Pod]{c.Revision, c.Time, c.Pass, c.Late, after})
		if c.Pass != nil && !c.Late && c.Before != nil && harms(c.Before.(*corev1.Pod), after) {
			known.harm = append(known.harm, c)
		}
	}
}

func (l *numberedSets) breaks(rule string, c simulate.Change, format string, args ...any) {
	l.violations = append(l.violations, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
}

// versions are what a controller had seen of a StatefulSet, first, and all that it became until the write.
type versions []*v1beta1.StatefulSet

func (v versions) every(holds func(*v1beta1.StatefulSet) bool) bool {
	return !slices.ContainsFunc(v, func(s *v1beta1.StatefulSet) bool { return !holds(s) })
}

func (l *numberedSets) versionsOf(uid types.UID, c simulate.Change) versions {
	seen := c.Pass.Seen[v1beta1.GroupVersion.WithKind("StatefulSet")]
	first := at(l.sets[uid], seen)
	if first == nil {
		return nil
	}
	out := versions{first}
	for _, version := range l.sets[uid] {
		if version.revision > seen && version.object != nil {
			out = append(out, version.object)
		}
	}
	return out
}

// slotsOf are the ordinals that a StatefulSet wants.
func slotsOf(s *v1beta1.StatefulSet) []int {
	n := 0
	if s.Spec.Ordinals != nil {
		n = int(s.Spec.Ordinals.Start)
	}
	var out []int
	for ; len(out) < int(*s.Spec.Replicas); n++ {
		if !isReserved(s, n) {
			out = append(out, n)
		}
	}
	return out
}

func isReserved(s *v1beta1.StatefulSet, n int) bool {
	return slices.ContainsFunc(s.Spec.ReserveOrdinals, func(entry intstr.IntOrString) bool {
		first, last, isRange := strings.Cut(entry.String(), "-")
		if !isRange {
			last = first
		}
		return number64(first) <= n && n <= number64(last)
	})
}

func number64(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("invariant: " + err.Error()) // the texts are the tests' own
	}
	return n
}

func ordinalOf(p *corev1.Pod) int { return number64(p.Name[strings.LastIndexByte(p.Name, '-')+1:]) }

func isOrdered(s *v1beta1.StatefulSet) bool {
	return s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

func isOnDeleteSet(s *v1beta1.StatefulSet) bool {
	return s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

func rollingOf(s *v1beta1.StatefulSet) v1beta1.RollingUpdateStatefulSetStrategy {
	if isOnDeleteSet(s) || s.Spec.UpdateStrategy.RollingUpdate == nil {
		return v1beta1.RollingUpdateStatefulSetStrategy{}
	}
	return *s.Spec.UpdateStrategy.RollingUpdate
}

func partitionOf(s *v1beta1.StatefulSet) int {
	if p := rollingOf(s).Partition; p != nil {
		return int(*p)
	}
	return 0
}

func unavailableOf(s *v1beta1.StatefulSet) int {
	return max(1, number(rollingOf(s).MaxUnavailable, int(*s.Spec.Replicas), math.Floor))
}

func minReadyOf(s *v1beta1.StatefulSet) int32 {
	if r := rollingOf(s).MinReadySeconds; r != nil && *r > 0 {
		return *r
	}
	return s.Spec.MinReadySeconds
}

// judge looks at one write of the controller.
func (l *numberedSets) judge(c simulate.Change) {
	if c.Key.Kind.Kind == "PersistentVolumeClaim" {
		l.judgeClaimOf(c)
		return
	}
	before, _ := c.Before.(*corev1.Pod)
	after, _ := c.After.(*corev1.Pod)
	if before == nil && after == nil {
		return
	}
	owner := metav1.GetControllerOfNoCopy(eitherOf(c))
	if owner == nil {
		return
	}
	v := l.versionsOf(owner.UID, c)
	if v == nil {
		return
	}
	switch {
	case before == nil:
		l.judgeCreation(c, after, v)
	case before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil):
		l.judgeLoss(c, before, v)
		l.judgeGoing(c, before, v)
	case after != nil:
		l.judgeLoss(c, before, v)
		l.judgeChange(c, before, after, v)
	}
}

// seenAt returns the Pod with an ordinal as the controller saw it; nil where it saw none.
func (l *numberedSets) seenAt(owner types.UID, c simulate.Change, n int) *corev1.Pod {
	for _, one := range l.of[owner] {
		if p := at(one.versions, c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Pod")]); p != nil && ordinalOf(p) == n {
			return p
		}
	}
	return nil
}

func (l *numberedSets) judgeCreation(c simulate.Change, p *corev1.Pod, v versions) {
	n := ordinalOf(p)
	if v.every(func(s *v1beta1.StatefulSet) bool { return !slices.Contains(slotsOf(s), n) }) {
		l.breaks(RuleOrdinal, c, "%s is created", p.Name)
	}
	l.judgeRevision(c, p, v)
	if !isOrdered(v[0]) {
		return
	}
	for _, lower := range slotsOf(v[0]) {
		if lower < n && !serves(l.seenAt(v[0].UID, c, lower), minReadyOf(v[0]), c.Pass.Time) {
			l.breaks(RuleOrder, c, "%s is created before %d is available", p.Name, lower)
		}
	}
}

// judgeRevision checks that a Pod below the partition comes back at the current revision.
func (l *numberedSets) judgeRevision(c simulate.Change, p *corev1.Pod, v versions) {
	protected := v.every(func(s *v1beta1.StatefulSet) bool {
		position := slices.Index(slotsOf(s), ordinalOf(p))
		isStored := l.revisions[s.Status.CurrentRevision] == s.UID
		return position >= 0 && position < partitionOf(s) && rollingOf(s).UnorderedUpdate == nil && isStored &&
			!isAt(p, s.Status.CurrentRevision)
	})
	if protected {
		l.breaks(RulePartition, c, "%s comes to %s, but the partition keeps it", p.Name, revisionOf(p))
	}
}

// judgeLoss checks that a write which takes the Pod of a slot out of service leaves enough others in it.
func (l *numberedSets) judgeLoss(c simulate.Change, before *corev1.Pod, v versions) {
	after, _ := c.After.(*corev1.Pod)
	minReady := minReadyOf(v[0])
	slots := slotsOf(v[0])
	if !slices.Contains(slots, ordinalOf(before)) || !serves(before, minReady, c.Pass.Time) ||
		(serves(after, minReady, c.Pass.Time) && sameImages(before, after)) {
		return
	}
	down := 1
	for _, n := range slots {
		if n != ordinalOf(before) && !l.isUp(c, v[0], n) {
			down++
		}
	}
	most := 0
	for _, s := range v {
		most = max(most, unavailableOf(s))
	}
	if down > most {
		l.breaks(RuleUnavailable, c, "%s makes %d Pods unavailable, of at most %d", before.Name, down, most)
	}
}

// isUp reports whether the Pod with an ordinal is available, or the controller had reason to believe so.
func (l *numberedSets) isUp(c simulate.Change, s *v1beta1.StatefulSet, n int) bool {
	for _, one := range l.of[s.UID] {
		now := one.now()
		if ordinalOf(one.versions[0].object) == n && (serves(now, minReadyOf(s), c.Pass.Time) || looksServing(one, c, minReadyOf(s))) {
			return true
		}
	}
	return false
}

// judgeGoing checks a deletion.
func (l *numberedSets) judgeGoing(c simulate.Change, before *corev1.Pod, v versions) {
	if v.every(func(s *v1beta1.StatefulSet) bool {
		return s.Spec.Lifecycle != nil && isHooked(before, s.Spec.Lifecycle.PreDelete)
	}) {
		l.breaks(RuleHook, c, "%s is deleted while its preDelete hook holds it", before.Name)
	}
	n := ordinalOf(before)
	_, named := before.Labels[keys.SpecifiedDelete]
	ended := before.Status.Phase == corev1.PodFailed || before.Status.Phase == corev1.PodSucceeded
	isKept := v.every(func(s *v1beta1.StatefulSet) bool {
		return slices.Contains(slotsOf(s), n) && (isOnDeleteSet(s) || rollingOf(s).Paused)
	})
	if isKept && !named && !ended && state(before) != pub.LifecycleStatePreparingDelete {
		l.breaks(RulePaused, c, "%s is deleted", before.Name)
	}
	if slices.Contains(slotsOf(v[0]), n) || !isOrdered(v[0]) || state(before) == pub.LifecycleStatePreparingDelete {
		return
	}
	for _, slot := range slotsOf(v[0]) {
		if !serves(l.seenAt(v[0].UID, c, slot), minReadyOf(v[0]), c.Pass.Time) {
			l.breaks(RuleOrder, c, "%s is scaled in before %d is available", before.Name, slot)
		}
	}
}

// judgeChange checks a write to a Pod that stays.
func (l *numberedSets) judgeChange(c simulate.Change, before, after *corev1.Pod, v versions) {
	if revisionOf(before) != revisionOf(after) {
		if v.every(func(s *v1beta1.StatefulSet) bool { return isOnDeleteSet(s) || rollingOf(s).Paused }) {
			l.breaks(RulePaused, c, "%s goes to %s", before.Name, revisionOf(after))
		}
		l.judgeRevision(c, after, v)
	}
	if sameImages(before, after) {
		return
	}
	if v.every(func(s *v1beta1.StatefulSet) bool {
		return s.Spec.Lifecycle != nil && isHooked(before, s.Spec.Lifecycle.InPlaceUpdate)
	}) {
		l.breaks(RuleHook, c, "%s changes while its inPlaceUpdate hook holds it", before.Name)
	}
}

// judgeClaimOf checks that the controller deletes no claim itself, and hands one to its Pod only where that is to go and may take it along.
func (l *numberedSets) judgeClaimOf(c simulate.Change) {
	before, after := c.Before, c.After
	if before != nil && before.GetDeletionTimestamp() == nil && (after == nil || after.GetDeletionTimestamp() != nil) {
		l.breaks(RuleKeep, c, "%s is deleted", c.Key.Name)
		return
	}
	if before == nil || after == nil {
		return
	}
	for _, owner := range after.GetOwnerReferences() {
		p := l.pods[owner.UID]
		if owner.Kind != "Pod" || p == nil ||
			slices.ContainsFunc(before.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			continue
		}
		if l.versionsOf(l.owner[owner.UID], c).every(func(s *v1beta1.StatefulSet) bool {
			policy := s.Spec.PersistentVolumeClaimRetentionPolicy
			return policy == nil || policy.WhenScaled != v1beta1.DeletePersistentVolumeClaimRetentionPolicyType ||
				slices.Contains(slotsOf(s), ordinalOf(p.versions[0].object))
		}) {
			l.breaks(RuleKeep, c, "%s is to go along with %s", c.Key.Name, owner.Name)
		}
	}
}
