package deployment

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// sequence is the writes of a move. Each is on the condition that the ReplicaSet is as it was read, or as the write before has left it.
type sequence struct {
	limits replicasets.Limits
	// now is each ReplicaSet, by name, as the writes so far leave it.
	now   map[string]*appsv1.ReplicaSet
	chain plan.Chain
}

// moving returns the writes of a move: the old ReplicaSets are held, at their new sizes, then the new one gets its size, then all are let
// go. Where the native controller gives the new one its size, nothing is held: what it gives is what it finds missing.
//
// What has been seen of sizes may be outdated. A write that makes a ReplicaSet smaller is right all the same. Before one is made larger,
// each of the others has been written, and so is as it was seen, and is held, and so stays. Those without Pods are among them if a template
// between the stable one and the new one made them: a write of ours may still be on its way that gives them Pods.
func (v *State) moving(next replicasets.Move) plan.Chain {
	s := sequence{limits: v.limits, now: map[string]*appsv1.ReplicaSet{}}
	for _, rs := range v.all() {
		s.now[rs.Name] = rs
	}
	if next.Given {
		for i, rs := range v.old {
			if next.Old[i] != sizeOf(rs) {
				s.write(rs, s.sized(rs, next.Old[i]))
			}
		}
		return s.chain
	}
	isGiven := false
	for i, rs := range v.old {
		isGiven = isGiven || next.Old[i] > sizeOf(rs)
	}
	if isGiven {
		for _, rs := range v.all() {
			if sizeOf(rs) > 0 {
				s.hold(rs, sizeOf(rs))
			}
		}
	}
	for i, rs := range v.old {
		if next.HoldAll || next.Hold && sizeOf(rs) > 0 {
			s.hold(rs, next.Old[i])
		}
	}
	if next.New > sizeOf(v.fresh) {
		for _, rs := range v.old {
			if sizeOf(rs) == 0 && v.isBetween(rs) {
				s.hold(rs, 0)
			}
		}
	}
	if len(s.chain) > 0 && v.isCopied() {
		return s.chain
	}
	if next.New != sizeOf(v.fresh) {
		if isHeld(s.now[v.fresh.Name]) {
			s.hold(v.fresh, next.New)
		} else {
			s.write(v.fresh, s.sized(v.fresh, next.New))
		}
	}
	for _, rs := range v.all() {
		if now := s.now[rs.Name]; isHeld(now) {
			s.chain = append(s.chain, release(now))
		}
	}
	return s.chain
}

// isCopied tells whether the native controller is about to copy the annotation to the new ReplicaSet, as it does whenever that changes: a
// write to it would be refused then. The next pass goes on with the move, wherever that one is.
func (v *State) isCopied() bool {
	return v.fresh.Annotations[keys.DeploymentStrategy] != v.Deployment.Annotations[keys.DeploymentStrategy]
}

// isBetween tells whether a ReplicaSet is newer than an old one that has Pods, so that it was the new one earlier in this release.
func (v *State) isBetween(rs *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(v.old, func(other *appsv1.ReplicaSet) bool {
		return sizeOf(other) > 0 && replicasets.Revision(other) < replicasets.Revision(rs)
	})
}

// hold gives a ReplicaSet a size and has it keep that.
func (s *sequence) hold(rs *appsv1.ReplicaSet, size int32) {
	after := s.sized(rs, size)
	after.Annotations[keys.HeldReplicas] = strconv.Itoa(int(size))
	if now := s.now[rs.Name]; sizeOf(now) != size || now.Annotations[keys.HeldReplicas] != after.Annotations[keys.HeldReplicas] {
		s.write(rs, after)
	}
}

// sized returns a copy of a ReplicaSet with another size.
func (s *sequence) sized(rs *appsv1.ReplicaSet, size int32) *appsv1.ReplicaSet {
	after := replicasets.ScaledFor(s.now[rs.Name].DeepCopy(), s.limits)
	after.Spec.Replicas = &size
	return after
}

// write adds the write of a ReplicaSet, with the event of the native controller.
func (s *sequence) write(rs, after *appsv1.ReplicaSet) {
	before := s.now[rs.Name]
	was, is := sizeOf(before), sizeOf(after)
	a := plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: before, After: after, What: fmt.Sprintf("scale from %d to %d", was, is),
		Why: fmt.Sprintf("%d Pods are to be updated", s.limits.Updated),
	}
	switch {
	case was == is:
		a.What = fmt.Sprintf("hold at %d", is)
	case was < is:
		a.Event, a.EventMessage = eventScaling, fmt.Sprintf("Scaled up replica set %s from %d to %d", rs.Name, was, is)
	default:
		a.Event, a.EventMessage = eventScaling, fmt.Sprintf("Scaled down replica set %s from %d to %d", rs.Name, was, is)
	}
	s.now[rs.Name] = after
	s.chain = append(s.chain, a)
}
