// Package migrate decides how Pods move from one workload to another, so that as many are available on the way as there were before.
//
// It is pure: numbers go in, and the next two numbers of replicas come out. Nothing is remembered between two steps but the goal, so that a
// move that was interrupted goes on where it is.
package migrate

import "fmt"

// Goal is what a move is to come to. Wire: it is stored as JSON on the workload that Pods move to.
type Goal struct {
	// From names the workload that Pods move from, as an argument of a command.
	From string `json:"from"`
	// Total is how many Pods both have together before the move and after it.
	Total int32 `json:"total"`
	// Target is how many of them the workload that they move to has in the end.
	Target int32 `json:"target"`
}

// Limits are how far the number of Pods may be from the total on the way.
type Limits struct{ MaxSurge, MaxUnavailable int32 }

// Side is one of the two workloads.
type Side struct {
	// Replicas is what its spec says, Pods and Available are those that its status counts.
	Replicas, Pods, Available int32
	// Seen says that its status is of the present spec.
	Seen bool
}

// Step is what to do next.
type Step struct {
	// From and To are the numbers of replicas that both are to have.
	From, To int32
	// Done says that the goal is reached.
	Done bool
	// Waits says what has to come about first, where both numbers stay as they are.
	Waits string
}

// Next returns the next step.
//
// A Pod is added as long as no more than total and maxSurge are there, and one is taken away as long as no fewer than total less
// maxUnavailable stay available. Pods that are on their way out, because their workload has fewer replicas than Pods, count among those
// that are there and not among those that are available. Of 5 Pods with maxSurge 1: 5+0, 5+1, 4+1, 4+2 and so on, each step when the Pod
// before is available.
func Next(from, to Side, goal Goal, limits Limits) Step {
	step := Step{From: from.Replicas, To: to.Replicas}
	if !from.Seen || !to.Seen {
		step.Waits = "the controllers have not seen the present replicas yet"
		return step
	}
	stays := max(goal.Total-goal.Target, 0)
	if room := goal.Total + limits.MaxSurge - from.there() - to.there(); room > 0 && to.Replicas < goal.Target {
		step.To = min(to.Replicas+room, goal.Target)
	}
	if spare := from.available() + to.available() - (goal.Total - limits.MaxUnavailable); from.Replicas > stays {
		// What is not available is taken away first, and costs nothing.
		spare = max(spare, 0) + from.Replicas - from.available()
		if lacking := goal.Total - limits.MaxUnavailable - from.available() - to.available(); lacking > 0 {
			spare = 0 // the Pods that are not available may be on their way in
		}
		step.From = max(from.Replicas-spare, stays)
	}
	switch {
	case step.From != from.Replicas || step.To != to.Replicas:
	case from.Replicas > stays || to.Replicas < goal.Target:
		step.Waits = fmt.Sprintf("%d of %d Pods are available", from.available()+to.available(), goal.Total)
	case from.Pods > from.Replicas:
		step.Waits = fmt.Sprintf("%d Pods are on their way out", from.Pods-from.Replicas)
	case to.Available < goal.Target:
		step.Waits = fmt.Sprintf("%d of %d Pods that were moved are available", to.Available, goal.Target)
	default:
		step.Done = true
	}
	return step
}

// there is how many Pods there are or will be.
func (s Side) there() int32 { return max(s.Replicas, s.Pods) }

// available is how many Pods stay available once as many are gone as are on their way out.
func (s Side) available() int32 { return min(s.Replicas, s.Available) }
