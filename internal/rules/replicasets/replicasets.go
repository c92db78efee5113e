// Package replicasets decides how Pods move from the old ReplicaSets of a paused Deployment to its new one, step by step and within the
// Deployment's own budget.
//
// While a Deployment is paused, its native controller does not roll it out, but scales it whenever it looks: one active ReplicaSet to
// spec.replicas; several to spec.replicas + maxSurge in all, where what is missing or too much is given to, or taken from, the largest. So
// sizes of that sum are at rest, and whatever else somebody writes is changed back at once. A move therefore takes Pods from the old
// ReplicaSets, gives as many to the new one, and holds the old ones in between (keys.HeldReplicas), so that the native controller can't
// give back what was taken. Once the new one is the largest, it gets what was taken from the native controller, and nothing is held.
//
//	replicas 10, maxSurge 3, maxUnavailable 2, limit 5, then 8:
//	(10, 0) ── hold 8 ── (8, 5) ── let go ── at rest: 13 Pods, of which 5 are updated
//	(8, 5) ── hold 5 ── (5, 8) ── let go ── at rest: 13 Pods, of which 8 are updated; limit 10:
//	(5, 8) ── take ── (3, 8) ── the native controller gives ── (3, 10)
package replicasets

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Set is a ReplicaSet.
type Set struct {
	Name string
	// Replicas is what its spec says.
	Replicas int32
	// Pods, Ready and Available are what its status counts. Settled says that the status is of its present spec.
	Pods, Ready, Available int32
	Settled                bool
	// Desired is spec.replicas of the Deployment when the native controller last scaled it; -1 if it does not say.
	Desired int32
	// Revision and Created order ReplicaSets.
	Revision int64
	Created  time.Time
	// Held says that its size is held.
	Held bool
}

// Limits are what the Deployment allows.
type Limits struct {
	// Replicas, Surge and Unavailable are spec.replicas, and maxSurge and maxUnavailable of it.
	Replicas, Surge, Unavailable int32
	// Updated is how many Pods may be of the new ReplicaSet.
	Updated int32
}

// most is how many Pods there may be.
func (l Limits) most() int32 { return l.Replicas + l.Surge }

// least is how many Pods have to be available.
func (l Limits) least() int32 { return max(l.Replicas-l.Unavailable, 0) }

// Move is what is to be written.
type Move struct {
	// Old are the sizes of the old ReplicaSets, in the order in which they were given, and New is that of the new one.
	Old []int32
	New int32
	// Hold says that the old ones with Pods are held while Pods move, HoldAll that those without are, too: the native controller scales any
	// if none has Pods.
	Hold, HoldAll bool
	// Given says that the native controller gives the new one its size, once the old ones have theirs.
	Given bool
	// Wait is what a next move waits for; empty if all that may be updated is.
	Wait string
}

// Next returns the next move. It never takes the new ReplicaSet back, and leaves scaling to the native controller.
func Next(l Limits, fresh Set, old []Set) Move {
	move := Move{New: fresh.Replicas}
	for _, s := range old {
		move.Old = append(move.Old, s.Replicas)
	}
	missing := max(l.Updated-fresh.Replicas, 0)
	isHalfDone := slices.ContainsFunc(old, func(s Set) bool { return s.Held })
	if l.Replicas == 0 || missing == 0 && !isHalfDone {
		return move
	}
	if move.Wait = unsettled(l, fresh, old); move.Wait != "" {
		return move
	}
	room := max(l.most()-totalOf(fresh, old), 0)
	removable, why := removable(l, fresh, old)
	grow := min(missing, room+removable)
	if grow < missing {
		move.Wait = why
	}
	move.New += grow
	move.Hold = isHalfDone && grow > 0 // what has been seen of the others may be outdated
	if grow > room {
		take(move.Old, old, grow-room)
		move.Given = room == 0 && !isHalfDone && isLargest(fresh, old, move.Old)
		move.Hold = !move.Given
	} else if i := largest(move.Old); i >= 0 && move.New >= move.Old[i] && room > grow && (grow > 0 || isHalfDone) {
		// The native controller would give what is missing to the new one, as the largest.
		move.Hold = true
		move.Old[i] += room - grow
	}
	move.HoldAll = move.Hold && fresh.Replicas == 0 && largest(move.Old) < 0
	return move
}

// isLargest tells whether the new ReplicaSet is larger than any old one at each moment in which these get other sizes, one after the other:
// the native controller gives what is missing to the largest.
func isLargest(fresh Set, old []Set, sizes []int32) bool {
	changed, before, after := 0, int32(0), int32(0)
	for i, s := range old {
		if s.Replicas != sizes[i] {
			changed++
		}
		before, after = max(before, s.Replicas), max(after, sizes[i])
	}
	if changed > 1 {
		return fresh.Replicas > before
	}
	return fresh.Replicas > after
}

// largest returns the index of the largest size; -1 if there is none above 0.
func largest(sizes []int32) int {
	found := -1
	for i, n := range sizes {
		if n > 0 && (found < 0 || n > sizes[found]) {
			found = i
		}
	}
	return found
}

// unsettled says why nothing can be moved yet; empty if something can.
func unsettled(l Limits, fresh Set, old []Set) string {
	active, held, late := 0, false, ""
	for _, s := range append(slices.Clone(old), fresh) {
		held = held || s.Held
		if s.Replicas == 0 {
			continue
		}
		active++
		if late == "" && s.Desired >= 0 && s.Desired != l.Replicas {
			late = fmt.Sprintf("ReplicaSet %s was scaled for %d replicas, and there are %d", s.Name, s.Desired, l.Replicas)
		}
	}
	total, rest := totalOf(fresh, old), l.Replicas
	if late != "" && (active > 1 || total != rest) { // the native controller never writes the only one if it has the right size
		return late
	}
	if active > 1 {
		rest = l.most()
	}
	switch {
	case total > l.most():
		return fmt.Sprintf("there are %d replicas, and %d are allowed", total, l.most())
	case !held && total != rest: // else it is our own move that is half done
		return fmt.Sprintf("there are %d replicas, and a paused Deployment comes to rest at %d", total, rest)
	}
	return ""
}

func totalOf(fresh Set, old []Set) int32 {
	total := fresh.Replicas
	for _, s := range old {
		total += s.Replicas
	}
	return total
}

// removable returns how many Pods of old ReplicaSets may go, and what keeps the others. Pods that are not ready go first, which costs
// nothing; all others may be available.
func removable(l Limits, fresh Set, old []Set) (int32, string) {
	available, notReady, total := min(fresh.Available, fresh.Replicas), int32(0), totalOf(fresh, old)
	for _, s := range append(slices.Clone(old), fresh) {
		if !s.Settled && s.Replicas > 0 {
			return 0, fmt.Sprintf("the status of ReplicaSet %s is not of its present spec", s.Name)
		}
	}
	for _, s := range old {
		available += s.available()
		notReady += s.notReady()
	}
	notYet := fresh.Replicas - min(fresh.Available, fresh.Replicas)
	free := min(notReady+max(available-l.least(), 0), total-l.least()-notYet)
	return max(free, 0), fmt.Sprintf("%d Pods are available, of which %d have to stay", available, l.least())
}

// available is how many of the Pods that stay are available for sure: those that are still to be deleted may be among the available ones.
func (s Set) available() int32 {
	leaving := max(s.Pods-s.Replicas, 0)
	return max(s.Available-max(leaving-(s.Pods-s.Ready), 0), 0)
}

// notReady is how many of its Pods are not ready, those included that are still to be created.
func (s Set) notReady() int32 { return max(s.Replicas-s.Ready, 0) }

// take takes Pods from old ReplicaSets: first those that are not ready, then others. Both begin with the highest revision, so that versions
// between the stable one and the new one go first; of one revision, with the older ReplicaSet.
func take(sizes []int32, old []Set, n int32) {
	order := make([]int, len(old))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(old[b].Revision, old[a].Revision), old[a].Created.Compare(old[b].Created),
			cmp.Compare(old[a].Name, old[b].Name))
	})
	for _, i := range order {
		k := min(n, old[i].notReady(), sizes[i])
		sizes[i], n = sizes[i]-k, n-k
	}
	for _, i := range order {
		k := min(n, sizes[i])
		sizes[i], n = sizes[i]-k, n-k
	}
}
