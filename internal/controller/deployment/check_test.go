package deployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleMost      = "there are never more Pods than maxSurge allows"
	ruleAvailable = "no Pod is taken that has to stay available"
	ruleLimit     = "no more Pods are updated than the batch says"
	rulePaused    = "what is not paused is left to the native controller"
	ruleSpec      = "nothing of the Deployment is changed"
	ruleNative    = "the new ReplicaSet is the native one"
)

// ledger is the cluster up to a change.
type ledger struct {
	calm bool
	// versions are those of the Deployment, with the revisions that made them.
	versions []version
	sets     map[types.UID]*appsv1.ReplicaSet
	pods     map[types.UID]*corev1.Pod
	broken   []invariant.Violation
}

type version struct {
	revision int64
	object   *appsv1.Deployment
}

// check returns the promises that were broken in a history.
func (s *scenario) check(history []simulate.Change) []invariant.Violation {
	l := &ledger{calm: s.calm, sets: map[types.UID]*appsv1.ReplicaSet{}, pods: map[types.UID]*corev1.Pod{}}
	for _, c := range history {
		switch after := c.After.(type) {
		case *appsv1.Deployment:
			l.judgeDeployment(c)
			l.versions = append(l.versions, version{c.Revision, after})
		case *appsv1.ReplicaSet:
			l.judgeSet(c)
			l.sets[after.UID] = after
		case *corev1.Pod:
			l.judgePod(c, after)
			l.pods[after.UID] = after
		case nil:
			delete(l.sets, c.Before.GetUID())
			delete(l.pods, c.Before.GetUID())
		}
	}
	return l.broken
}

func (l *ledger) breaks(c simulate.Change, rule, format string, args ...any) {
	l.broken = append(l.broken, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name + ": " + fmt.Sprintf(format, args...)})
}

// now returns the Deployment as it is, seen as a pass saw it.
func (l *ledger) now() *appsv1.Deployment { return l.versions[len(l.versions)-1].object }

func (l *ledger) seen(p *simulate.Pass) *appsv1.Deployment {
	found := l.versions[0].object
	for _, v := range l.versions {
		if v.revision <= p.Seen[appsv1.SchemeGroupVersion.WithKind("Deployment")] {
			found = v.object
		}
	}
	return found
}

func (l *ledger) judgeDeployment(c simulate.Change) {
	before, existed := c.Before.(*appsv1.Deployment)
	if c.Pass != nil && existed && before.Generation != c.After.(*appsv1.Deployment).Generation {
		l.breaks(c, ruleSpec, "generation %d", before.Generation)
	}
}

// judgeSet judges what became of a ReplicaSet.
func (l *ledger) judgeSet(c simulate.Change) {
	after := c.After.(*appsv1.ReplicaSet)
	before, existed := c.Before.(*appsv1.ReplicaSet)
	if len(l.versions) == 0 || !metav1.IsControlledBy(after, l.now()) {
		return
	}
	d := l.now()
	if c.Pass != nil && !existed {
		seen := l.seen(c.Pass)
		if want := replicasets.NameOf(seen, replicasets.Hash(&seen.Spec.Template, seen.Status.CollisionCount)); after.Name != want {
			l.breaks(c, ruleNative, "want %s", want)
		}
		if !c.Late {
			none := after.DeepCopy()
			none.Spec.Replicas = new(int32)
			l.judgeMove(c, none, after)
		}
		return
	}
	if !existed || sizeOf(before) == sizeOf(after) {
		return
	}
	if c.Pass != nil && !c.Late {
		l.judgeMove(c, before, after)
	}
	isNew := replicasets.New(d, []*appsv1.ReplicaSet{after}) != nil
	if limits, released := limited(d); l.calm && released && isNew && sizeOf(after) > max(sizeOf(before), limits.Updated) && !l.wasLately(c, isFree) {
		l.breaks(c, ruleLimit, "%d of %d are updated", sizeOf(after), limits.Updated)
	}
}

// limited returns what a Deployment allows that is released in batches; false for another one.
func limited(d *appsv1.Deployment) (replicasets.Limits, bool) {
	v := Classify(Snapshot{Deployment: d})
	return v.limits, v.released && v.problem == nil && d.Spec.Paused
}

// isFree tells whether a Deployment is not released in batches, or updates fewer Pods than it did.
func isFree(before, d *appsv1.Deployment) bool {
	was, held := limited(before)
	is, holds := limited(d)
	return !held || !holds || is.Updated < was.Updated || before.Spec.Template.Spec.Containers[0].Image != d.Spec.Template.Spec.Containers[0].Image
}

// recent is how many changes of the cluster a native controller may lag behind.
const recent = 40

// wasLately tells whether the Deployment changed in some way within the last changes: others may still act by what it was before.
func (l *ledger) wasLately(c simulate.Change, how func(before, after *appsv1.Deployment) bool) bool {
	for i := len(l.versions) - 1; i > 0 && l.versions[i].revision > c.Revision-recent; i-- {
		if how(l.versions[i-1].object, l.versions[i].object) {
			return true
		}
	}
	return false
}

// judgeMove judges a change of size by our controller.
func (l *ledger) judgeMove(c simulate.Change, before, after *appsv1.ReplicaSet) {
	seen := l.seen(c.Pass)
	limits, released := limited(seen)
	if !released {
		l.breaks(c, rulePaused, "from %d to %d", sizeOf(before), sizeOf(after))
		return
	}
	total, most := int32(0), limits.Replicas+limits.Surge
	for _, rs := range l.sets {
		if metav1.IsControlledBy(rs, seen) {
			total += sizeOf(rs)
		}
	}
	now := native.LimitsOf(l.now())
	isSame := seen.Spec.Paused == l.now().Spec.Paused && seen.Spec.Template.Spec.Containers[0].Image == l.now().Spec.Template.Spec.Containers[0].Image
	if is := total - sizeOf(before) + sizeOf(after); isSame && is > total && is > max(most, now.Replicas+now.Surge) {
		l.breaks(c, ruleMost, "%d of %d", is, most)
	}
	if isNew := replicasets.New(seen, []*appsv1.ReplicaSet{after}) != nil; isNew && sizeOf(after) > limits.Updated {
		l.breaks(c, ruleLimit, "%d of %d are updated", sizeOf(after), limits.Updated)
	}
}

// judgePod judges the deletion of a Pod: where nothing else goes wrong, as many stay available as have to.
func (l *ledger) judgePod(c simulate.Change, after *corev1.Pod) {
	before, existed := c.Before.(*corev1.Pod)
	if !l.calm || !existed || before.DeletionTimestamp != nil || after.DeletionTimestamp == nil || !pod.IsReady(before) {
		return
	}
	limits, released := limited(l.now())
	ready := int32(-1)
	for _, p := range l.pods {
		if p.DeletionTimestamp == nil && pod.IsReady(p) {
			ready++
		}
	}
	if released && ready < limits.Replicas-limits.Unavailable && !l.wasLately(c, isFree) {
		l.breaks(c, ruleAvailable, "%d of %d are left", ready, limits.Replicas-limits.Unavailable)
	}
}
