package invariant

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that Check knows.
const (
	RuleUnavailable = "no more unavailable than maxUnavailable"
	RuleTotal       = "no more Pods than replicas and maxSurge"
	RulePartition   = "no more updated than the partition leaves"
	RulePaused      = "no update while paused"
	RuleInPlaceOnly = "no deletion to update where that is not allowed"
	RuleGrace       = "no change before the grace period is over"
	RuleHook        = "no deletion or change while a hook holds the Pod"
	RuleClaims      = "no deletion of a claim in use"
	RuleService     = "no end of an update before the Pod runs as its spec says"
)

func (l *ledger) judge(c simulate.Change) {
	before, _ := c.Before.(*corev1.Pod)
	after, _ := c.After.(*corev1.Pod)
	switch {
	case c.Key.Kind.Kind == "PersistentVolumeClaim":
		l.judgeClaim(c)
		return
	case before == nil && after == nil:
		return
	}
	owner := metav1.GetControllerOfNoCopy(eitherOf(c))
	if owner == nil {
		return
	}
	w, ok := l.windowOf(owner.UID, c)
	if !ok {
		return
	}
	lives := l.of[owner.UID]
	if before != nil {
		l.judgeHarm(c, w, lives)
	}
	switch {
	case before == nil:
		l.judgeTotal(c, w, lives)
		l.judgePartition(c, w, lives)
	case isActive(before) && !isActive(after):
		l.judgeDeletion(c, w, lives)
	default:
		l.judgeUpdate(c, w, lives)
	}
}

// judgeHarm checks that a write which takes a Pod out of service leaves enough others in it.
func (l *ledger) judgeHarm(c simulate.Change, w window, lives []*life) {
	before, _ := c.Before.(*corev1.Pod)
	after, _ := c.After.(*corev1.Pod)
	minReady := w.seen.Spec.MinReadySeconds
	if !serves(before, minReady, c.Pass.Time) || (serves(after, minReady, c.Pass.Time) && sameImages(before, after)) {
		return
	}
	serving := 0
	for _, other := range lives {
		now := other.now()
		if now != nil && now.UID == before.UID {
			continue
		}
		if (w.has(now) && serves(now, minReady, c.Pass.Time)) || looksServing(other, c, minReady) {
			serving++
		}
	}
	floor := w.most(func(b bounds) int { return b.unavailable - b.replicas })
	if serving < -floor {
		l.breaks(RuleUnavailable, c, "%s leaves %d Pods available, of at least %d", before.Name, serving, -floor)
	}
}

// looksServing reports whether the controller had reason to believe that a Pod is available which is not: it was when the controller
// looked, and the controller has done nothing to it since.
func looksServing(other *life, c simulate.Change, minReady int32) bool {
	if last := other.now(); last != nil && last == c.After {
		return false
	}
	seen := c.Pass.Seen[c.Key.Kind]
	for _, harm := range other.harm {
		if harm.Revision > seen {
			return false
		}
	}
	return serves(at(other.versions, seen), minReady, c.Pass.Time)
}

// judgeTotal checks a creation. Pods that their deletion hook holds may or may not count.
func (l *ledger) judgeTotal(c simulate.Change, w window, lives []*life) {
	total := 0
	excluding := !w.every(func(s *v1beta1.CloneSet) bool { return !s.Spec.ScaleStrategy.ExcludePreparingDelete })
	for _, other := range lives {
		p := other.now()
		if w.has(p) && !other.isUnknownTo(c) && !(excluding && state(p) == pub.LifecycleStatePreparingDelete) {
			total++
		}
	}
	if most := w.most(func(b bounds) int { return b.replicas + b.surge }); total > most {
		l.breaks(RuleTotal, c, "with %s there are %d Pods, of at most %d", c.Key.Name, total, most)
	}
}

// isUnknownTo reports whether the Pod came to be by a write that its controller had given up on, after the controller had looked.
func (l *life) isUnknownTo(c simulate.Change) bool {
	return l.versions[0].revision > c.Pass.Seen[c.Key.Kind] && l.late
}

// judgePartition checks a write that brings a Pod to a revision.
func (l *ledger) judgePartition(c simulate.Change, w window, lives []*life) {
	after := c.After.(*corev1.Pod)
	target := revisionOf(after)
	// Where no older revision is stored, or could be known to be, there is nothing else to create Pods at.
	isCurrent := func(s *v1beta1.CloneSet) bool {
		current, stored := l.revisions[s.Status.CurrentRevision]
		return isAt(after, s.Status.CurrentRevision) || !stored || current.owner != s.UID ||
			current.late && current.since > c.Pass.Seen[appsv1.SchemeGroupVersion.WithKind("ControllerRevision")]
	}
	if !w.every(func(s *v1beta1.CloneSet) bool { return !isCurrent(s) }) {
		return
	}
	updated := 0
	for _, other := range lives {
		p := other.now()
		if w.has(p) && revisionOf(p) == target && !other.isUnknownTo(c) && !l.isLeaving(p, w) {
			updated++
		}
	}
	most := w.most(func(b bounds) int { return b.replicas - b.partition })
	if updated > most {
		l.breaks(RulePartition, c, "with %s %d Pods are at %s, of at most %d", after.Name, updated, target, most)
	}
}

// isLeaving reports whether the Pod is to be deleted by the user's wish, or waits for its hook to be.
func (l *ledger) isLeaving(p *corev1.Pod, w window) bool {
	_, named := p.Labels[keys.SpecifiedDelete]
	return named || state(p) == pub.LifecycleStatePreparingDelete ||
		!w.every(func(s *v1beta1.CloneSet) bool { return !slices.Contains(s.Spec.ScaleStrategy.PodsToDelete, p.Name) })
}

func (l *ledger) judgeDeletion(c simulate.Change, w window, lives []*life) {
	before := c.Before.(*corev1.Pod)
	if w.every(func(s *v1beta1.CloneSet) bool {
		return s.Spec.Lifecycle != nil && isHooked(before, s.Spec.Lifecycle.PreDelete)
	}) {
		l.breaks(RuleHook, c, "%s is deleted while its preDelete hook holds it", before.Name)
	}
	if l.isLeaving(before, w) || !w.every(func(s *v1beta1.CloneSet) bool { return !mayRecreate(s) }) {
		return
	}
	active := 1
	for _, other := range lives {
		if p := other.now(); p != c.After && (isActive(p) || isActive(at(other.versions, c.Pass.Seen[c.Key.Kind]))) {
			active++
		}
	}
	if least := -w.most(func(b bounds) int { return -b.replicas }); active <= least {
		l.breaks(RuleInPlaceOnly, c, "%s is deleted although only %d Pods are there, of %d", before.Name, active, least)
	}
}

func (l *ledger) judgeUpdate(c simulate.Change, w window, lives []*life) {
	before := c.Before.(*corev1.Pod)
	after, isThere := c.After.(*corev1.Pod)
	if !isThere {
		return
	}
	if revisionOf(before) != revisionOf(after) {
		l.judgePartition(c, w, lives)
		if w.every(func(s *v1beta1.CloneSet) bool { return isPaused(s) || isOnDelete(s) }) {
			l.breaks(RulePaused, c, "%s goes to %s", before.Name, revisionOf(after))
		}
	}
	if state(before) == pub.LifecycleStateUpdating &&
		(state(after) == pub.LifecycleStateUpdated || state(after) == pub.LifecycleStateNormal) {
		l.judgeEnd(c, before)
	}
	if sameImages(before, after) {
		return
	}
	if w.every(func(s *v1beta1.CloneSet) bool {
		return s.Spec.Lifecycle != nil && isHooked(before, s.Spec.Lifecycle.InPlaceUpdate)
	}) {
		l.breaks(RuleHook, c, "%s changes while its inPlaceUpdate hook holds it", before.Name)
	}
	l.judgeGrace(c, before)
}

// judgeEnd checks that the containers of a Pod whose update is over are those of its spec.
func (l *ledger) judgeEnd(c simulate.Change, before *corev1.Pod) {
	for _, status := range before.Status.ContainerStatuses {
		for _, wanted := range before.Spec.Containers {
			if wanted.Name != status.Name {
				continue
			}
			if status.Image != wanted.Image {
				l.breaks(RuleService, c, "%s: container %s runs %s and is to run %s", before.Name, status.Name, status.Image, wanted.Image)
			}
			if status.Resources == nil || !status.Resources.Requests.Cpu().Equal(*wanted.Resources.Requests.Cpu()) {
				l.breaks(RuleService, c, "%s: container %s is not resized yet", before.Name, status.Name)
			}
		}
	}
}

// judgeGrace checks that a Pod was out of service for the grace period before it changes.
func (l *ledger) judgeGrace(c simulate.Change, before *corev1.Pod) {
	versions := l.pods[before.UID].versions
	down := lastDown(versions)
	if down < 0 {
		l.breaks(RuleGrace, c, "%s changes while it is in service", before.Name)
		return
	}
	least := l.leastGrace(metav1.GetControllerOfNoCopy(before).UID, versions[down])
	since := versions[down].time
	if versions[down].late {
		// No API server says when it did what a request asks for that was long on its way: the time that the request tells is what there
		// is.
		since = condition(versions[down].object, pub.InPlaceUpdateReady).LastTransitionTime.Time
	}
	if waited := c.Time.Sub(since); waited < least {
		l.breaks(RuleGrace, c, "%s changes %s after it went out of service, grace period %s", before.Name, waited, least)
	}
}

// lastDown returns which version of a Pod took it out of service, or -1 when it is in service.
func lastDown(versions []dated[*corev1.Pod]) int {
	down := -1
	for i, v := range versions {
		if v.object == nil {
			continue
		}
		gate := condition(v.object, pub.InPlaceUpdateReady)
		switch closed := gate != nil && gate.Status != corev1.ConditionTrue; {
		case !closed:
			down = -1
		case down < 0:
			down = i
		}
	}
	return down
}

// leastGrace returns the shortest grace period that was wanted since the controller looked which took the Pod out of service.
func (l *ledger) leastGrace(owner types.UID, down dated[*corev1.Pod]) time.Duration {
	since := down.revision
	if down.pass != nil {
		since = down.pass.Seen[v1beta1.GroupVersion.WithKind("CloneSet")]
	}
	least := time.Duration(-1)
	if seen := at(l.sets[owner], since); seen != nil {
		least = graceOf(seen)
	}
	for _, version := range l.sets[owner] {
		if version.object != nil && version.revision > since {
			if grace := graceOf(version.object); least < 0 || grace < least {
				least = grace
			}
		}
	}
	return least
}

func graceOf(set *v1beta1.CloneSet) time.Duration {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.InPlaceUpdateStrategy == nil {
		return 0
	}
	return time.Duration(rolling.InPlaceUpdateStrategy.GracePeriodSeconds) * time.Second
}

// judgeClaim checks that a claim goes only with its Pod.
func (l *ledger) judgeClaim(c simulate.Change) {
	claim := c.Before
	if claim == nil || claim.GetDeletionTimestamp() != nil || (c.After != nil && c.After.GetDeletionTimestamp() == nil) {
		return
	}
	podKey := simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod")}
	for _, other := range l.pods {
		p := other.now()
		if isActive(p) && !other.isUnknownTo(simulate.Change{Key: podKey, Pass: c.Pass}) &&
			p.Labels[keys.InstanceID] == claim.GetLabels()[keys.InstanceID] && mounts(p, claim.GetName()) && !isOlderOrphan(p, claim) {
			l.breaks(RuleClaims, c, "%s is deleted although %s is there", claim.GetName(), p.Name)
		}
	}
}

// isOlderOrphan reports whether a Pod was released before the claim was made, which is then for another Pod that was to have its name.
func isOlderOrphan(p *corev1.Pod, claim client.Object) bool {
	return metav1.GetControllerOfNoCopy(p) == nil && p.CreationTimestamp.Before(ptr.To(claim.GetCreationTimestamp()))
}

func mounts(p *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
