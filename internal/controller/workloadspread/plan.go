package workloadspread

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// Reasons of events.
//
// Wire: tools look for these.
const (
	eventCreateFailed = "CreatePodFailed"
	eventDeleteFailed = "DeletePodFailed"
	eventCostFailed   = "PatchPodDeletionCostFailed"
	eventRecover      = "RecoverSchedulable"
	eventMoved        = "SurplusPodMoved"
	eventReturned     = "PodReturned"
	eventMoveFailed   = "MoveSurplusPodFailed"
	eventInvalid      = "InvalidMaxReplicas"
	eventAdmitFailed  = "AdmitGatedPodFailed"
)

// Reasons of the condition Schedulable.
//
// Wire: tools compare these.
const (
	reasonUnschedulable = "PodUnschedulable"
	reasonSufficient    = "Sufficient"
)

const (
	// closedFor is how long a subset in which Pods could not be scheduled takes no more.
	closedFor = 5 * time.Minute
	// closesIn is how long it takes until all managers know that it is closed: a Pod that is deleted before could come back there.
	closesIn = time.Second
	// moveInterval is when to look again whether the next Pod can be moved: nothing tells when Pods become ready.
	moveInterval = 5 * time.Second
)

// Plan decides the next step from the snapshot alone.
func Plan(s Snapshot) plan.Plan {
	b := plan.For(fmt.Sprintf("WorkloadSpread %s/%s   %d Pods", s.Spread.Namespace, s.Spread.Name, len(s.Owned)))
	if s.Problem != nil {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Event: eventInvalid, Why: s.Problem.Error()})
		return b.Plan()
	}
	l := s.ledger()
	b.Recheck(l.next, "an entry of the ledger ends")
	if len(l.creating) > 0 {
		b.Hold(plan.Hold{Code: reason.Held, Event: eventCreateFailed,
			Why: fmt.Sprintf("no Pod was seen within %s of what was given room: %s",
				spread.CreatingFor, strings.Join(l.creating, ", "))})
	}
	if len(l.deleting) > 0 {
		b.Hold(plan.Hold{Code: reason.WaitDeletion, Event: eventDeleteFailed,
			Why: fmt.Sprintf("these Pods were to go and are there after %s: %s",
				spread.DeletingFor, strings.Join(l.deleting, ", "))})
	}
	s.planGated(b, l)
	s.planPods(b, l.spread)
	s.planStuck(b)
	s.planClosed(b)
	s.planMoves(b, l.spread)
	return b.Plan()
}

// counted is the WorkloadSpread with the status that the Pods come to, and what has left its ledger because its time is over.
type counted struct {
	spread             *v1beta1.WorkloadSpread
	creating, deleting []string
	next               time.Duration
	gated              []gated
}

func (s Snapshot) ledger() counted {
	l := counted{spread: s.Spread.DeepCopy()}
	l.creating, l.deleting, l.next = spread.Expire(l.spread, s.Now)
	seen := map[string]bool{} // of what has come in time after all
	for _, p := range s.Named {
		if m, ok := spread.MatchedOf(p); ok {
			seen[m.UID] = true
		}
	}
	l.creating = slices.DeleteFunc(l.creating, func(entry string) bool { return seen[entry] || s.Gone[entry] })
	spread.Recount(l.spread, s.Limits, s.Named, s.Gone)
	s.giveGated(&l)
	return l
}

// planPods has Pods join the subsets of their nodes, and gives Pods the cost of their subsets.
func (s Snapshot) planPods(b *plan.Builder, now *v1beta1.WorkloadSpread) {
	kind := spread.TargetOf(s.Spread).GroupKind
	joined := map[*corev1.Pod]*corev1.Pod{} // after by before
	for _, p := range s.Owned {
		node := s.Nodes[p.Spec.NodeName]
		if !isUnclaimed(p) || node == nil {
			continue
		}
		rooms := spread.Rooms(now, s.Limits, spread.VersionOf(kind, p), 0)
		if subset := spread.Adopt(s.Spread, rooms, p, node); subset >= 0 {
			after := p.DeepCopy()
			spread.Join(&after.ObjectMeta, s.Spread, subset)
			joined[p] = after
		}
	}
	current := make([]*corev1.Pod, len(s.Owned))
	before := map[*corev1.Pod]*corev1.Pod{}
	for i, p := range s.Owned {
		if current[i] = p; joined[p] != nil {
			current[i] = joined[p]
		}
		before[current[i]] = p
	}
	costs := map[*corev1.Pod]int32{}
	if s.HasCosts {
		costs = spread.Costs(s.Spread, s.Fill, current, s.Latest)
	}
	for _, p := range current {
		s.planPod(b, before[p], p, costs)
	}
}

// planPod writes on a Pod what it joins and what it costs, in one write.
func (s Snapshot) planPod(b *plan.Builder, before, p *corev1.Pod, costs map[*corev1.Pod]int32) {
	if isWaiting(p) {
		return // it gets its cost with its subset
	}
	cost, has := costs[p]
	was, ok := spread.CostOf(p)
	due := has && (!ok || was != cost)
	if p == before && !due {
		return
	}
	after, what := p, "join its subset"
	if p == before {
		after, what = p.DeepCopy(), "cost "+strconv.Itoa(int(cost))
	}
	if has {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, corev1.PodDeletionCost, strconv.Itoa(int(cost)))
	}
	// Nothing else about the Pod matters: kubelets write to it all the time.
	b.Do(plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: before, After: after, AnyVersion: true, Optional: true, What: what,
		Why: "that is what its subset is worth", FailedEvent: eventCostFailed, FailedPrefix: "writing on a Pod: "})
}

// planStuck deletes Pods that can't be scheduled, once their subset is closed everywhere.
func (s Snapshot) planStuck(b *plan.Builder) {
	after := spread.RescheduleAfter(s.Spread)
	if after == 0 {
		return
	}
	for _, p := range s.Owned {
		m, ok := spread.MatchedOf(p)
		if !ok || !s.canClose(m) {
			continue
		}
		stuck, wait := spread.IsStuck(p, after, s.Now)
		b.Recheck(wait, "Pod "+p.Name+" has waited too long to be scheduled")
		if !stuck {
			continue
		}
		c := s.condition(m.Subset)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue // the status is written first
		}
		if left := c.LastTransitionTime.Add(closesIn).Sub(s.Now); left > 0 {
			b.Recheck(left, "subset "+m.Subset+" is closed everywhere")
			continue
		}
		b.Do(plan.Action{Verb: plan.Delete, Concern: plan.Scale, Before: p, What: "reschedule", Why: fmt.Sprintf(
			"it could not be scheduled in subset %s for %s", m.Subset, after)})
	}
}

// planMoves deletes a Pod that is above the limit of its subset, or that an earlier subset takes again, while all Pods are there and ready,
// so that the workload creates one in another subset.
func (s Snapshot) planMoves(b *plan.Builder, now *v1beta1.WorkloadSpread) {
	kind := spread.TargetOf(s.Spread).GroupKind
	if !s.HasCosts {
		return
	}
	var surplus, returning []*corev1.Pod
	if s.Spread.Spec.SurplusPolicy == v1beta1.MoveSurplus {
		surplus = spread.Surplus(s.Spread, s.Fill, s.Owned, s.Latest)
	}
	if spread.Returns(s.Spread) {
		returning = spread.Returning(now, s.Fill, s.Owned, spread.Latest{Version: s.Latest, Total: s.Total})
	}
	if len(surplus)+len(returning) == 0 {
		return
	}
	b.Recheck(moveInterval, "Pods are to be moved to other subsets")
	if !s.isComplete() {
		return // one Pod at a time, and none during a rollout
	}
	for _, p := range surplus {
		m, _ := spread.MatchedOf(p)
		if hasRoomBeside(now, spread.Rooms(now, s.Limits, spread.VersionOf(kind, p), s.Total), m.Subset) {
			b.Do(move(p, eventMoved, "subset "+m.Subset+" has more Pods than it takes, and another one has room"))
			return
		}
	}
	if len(returning) > 0 {
		m, _ := spread.MatchedOf(returning[0])
		b.Do(move(returning[0], eventReturned, "a subset before "+m.Subset+" takes Pods again"))
	}
}

// isComplete reports whether all Pods that the workload is to have are there, ready and of its latest version.
func (s Snapshot) isComplete() bool {
	kind, ready := spread.TargetOf(s.Spread).GroupKind, int32(0)
	for _, p := range s.Owned {
		switch {
		case pod.IsFinished(p):
		case pod.IsActive(p) && pod.IsReady(p) && (spread.SurgesOnly(kind) || spread.VersionOf(kind, p) == s.Latest):
			ready++
		default:
			return false
		}
	}
	return ready >= s.Total
}

func move(p *corev1.Pod, event, why string) plan.Action {
	return plan.Action{
		Verb: plan.Delete, Concern: plan.Scale, Before: p, What: "move", Why: why,
		Event: event, EventMessage: "deleted Pod " + p.Name + ": " + why,
		FailedEvent: eventMoveFailed, FailedPrefix: "deleting Pod " + p.Name + ": ",
	}
}

// hasRoomBeside reports whether a subset other than the given one has room.
func hasRoomBeside(s *v1beta1.WorkloadSpread, rooms []int32, subset string) bool {
	for i := range rooms {
		if rooms[i] != 0 && s.Spec.Subsets[i].Name != subset {
			return true
		}
	}
	return false
}

// canClose reports whether the subset that a Pod was given to can be closed: the last one can't.
func (s Snapshot) canClose(m spread.Matched) bool {
	i := spread.IndexOf(s.Spread, m.Subset)
	return m.Name == s.Spread.Name && i >= 0 && i < len(s.Spread.Spec.Subsets)-1
}

func (s Snapshot) condition(subset string) *metav1.Condition {
	for i := range s.Spread.Status.SubsetStatuses {
		if one := &s.Spread.Status.SubsetStatuses[i]; one.Name == subset {
			return meta.FindStatusCondition(one.Conditions, v1beta1.SubsetSchedulable)
		}
	}
	return nil
}

// planClosed looks again when a subset is to be opened, and tells when one is.
func (s Snapshot) planClosed(b *plan.Builder) {
	for i := range s.Spread.Spec.Subsets {
		name := s.Spread.Spec.Subsets[i].Name
		c := s.condition(name)
		if c == nil || c.Status != metav1.ConditionFalse || spread.RescheduleAfter(s.Spread) == 0 {
			continue
		}
		if left := c.LastTransitionTime.Add(closedFor).Sub(s.Now); left > 0 {
			b.Recheck(left, "subset "+name+" takes Pods again")
			continue
		}
		if s.stuckIn(name, spread.RescheduleAfter(s.Spread)) > 0 {
			continue // it is closed once more
		}
		b.Hold(plan.Hold{Code: reason.Nothing, Name: name, Event: eventRecover, EventType: corev1.EventTypeNormal,
			Why: fmt.Sprintf("subset %s takes Pods again: it was closed for %s", name, closedFor)})
	}
}

// Status returns the ledger as the Pods come to it, and which subsets are closed.
func Status(s Snapshot, _ plan.Plan, _ apply.Outcome) v1beta1.WorkloadSpreadStatus {
	if s.Problem != nil {
		return s.Spread.Status
	}
	counted := s.ledger().spread
	spread.Tally(counted, s.Limits, s.Owned)
	status := counted.Status
	status.ObservedGeneration = s.Spread.Generation
	for i := range status.SubsetStatuses {
		one := &status.SubsetStatuses[i]
		one.Conditions = slices.Clone(one.Conditions)
		s.setSchedulable(one)
	}
	return status
}

func (s Snapshot) setSchedulable(one *v1beta1.WorkloadSpreadSubsetStatus) {
	after := spread.RescheduleAfter(s.Spread)
	if after == 0 {
		meta.RemoveStatusCondition(&one.Conditions, v1beta1.SubsetSchedulable)
		if len(one.Conditions) == 0 {
			one.Conditions = nil
		}
		return
	}
	c := metav1.Condition{
		Type: v1beta1.SubsetSchedulable, Status: metav1.ConditionTrue, Reason: reasonSufficient, Message: "takes Pods",
		LastTransitionTime: metav1.NewTime(s.Now.Truncate(time.Second)), ObservedGeneration: s.Spread.Generation,
	}
	before := meta.FindStatusCondition(one.Conditions, v1beta1.SubsetSchedulable)
	closed := before != nil && before.Status == metav1.ConditionFalse && before.LastTransitionTime.Add(closedFor).After(s.Now)
	stuck := s.stuckIn(one.Name, after)
	if stuck > 0 && !closed {
		meta.RemoveStatusCondition(&one.Conditions, v1beta1.SubsetSchedulable) // it is closed anew, from now on
	}
	if (closed || stuck > 0) && s.canClose(spread.Matched{Name: s.Spread.Name, Subset: one.Name}) {
		c.Status, c.Reason = metav1.ConditionFalse, reasonUnschedulable
		c.Message = fmt.Sprintf("Pods could not be scheduled within %s: no more are given to it for %s", after, closedFor)
	}
	meta.SetStatusCondition(&one.Conditions, c)
}

func (s Snapshot) stuckIn(subset string, after time.Duration) (n int) {
	for _, p := range s.Owned {
		m, ok := spread.MatchedOf(p)
		if !ok || m.Name != s.Spread.Name || m.Subset != subset || !pod.IsActive(p) {
			continue
		}
		if stuck, _ := spread.IsStuck(p, after, s.Now); stuck {
			n++
		}
	}
	return n
}
