// Package guard decides whether the updated Pods of a release do worse than the old ones, by what every cluster knows of Pods: restarts,
// exit codes, readiness and the time to it.
//
// The test is sequential: it may be asked after every Pod, as often as one likes, and calls a good release bad with a probability of at
// most ErrorRate over the whole release. Each updated Pod is compared with a block of old ones. If all do equally well, whatever their
// common rate of failures is, the expected value of a block's factor
//
//	P(outcomes | updated fail with b, old with a) / P(outcomes | all fail with c),   c the mean of a and b over the block
//
// is at most 1: with one old Pod, c-a = b-c = d and x, y the ratios of the true rates of failure and success to those of c, it is
// (1-d(x-y))(1+d(x-y)). So the product over the blocks reaches 1/ErrorRate with a probability of at most ErrorRate (Ville's inequality).
package guard

import (
	"fmt"
	"time"
)

// ErrorRate is how many good releases the guard may stop.
const ErrorRate = 0.01

// Pod is what is known of a Pod.
type Pod struct {
	Name    string
	Created time.Time
	// ReadyAt is when it became ready first; zero if it has not.
	ReadyAt time.Time
	Ready   bool
	// Restarts counts restarts of its containers, ExitCode and ExitedAt are of the last container that ended; zero if none has.
	Restarts int32
	ExitCode int32
	ExitedAt time.Time
}

// Limits say when a Pod has failed.
type Limits struct {
	// Now is the time, Begun when the release began.
	Now, Begun time.Time
	// Window is how long a Pod is watched: an updated one from its creation on, an old one up to the beginning of the release.
	Window time.Duration
	// ToReady is how long a Pod may take to be ready: see ToReady.
	ToReady time.Duration
}

// leastToReady is the shortest time that a Pod may take to be ready, whatever others took.
const leastToReady = 30 * time.Second

// ToReady returns how long a Pod may take to be ready: three times what the slowest old Pod took, and at least 30 seconds.
func ToReady(old []Pod) time.Duration {
	slowest := time.Duration(0)
	for _, p := range old {
		if !p.ReadyAt.IsZero() {
			slowest = max(slowest, p.ReadyAt.Sub(p.Created))
		}
	}
	return max(3*slowest, leastToReady)
}

// updatedFailed returns why an updated Pod has failed; empty while it has not.
func (l Limits) updatedFailed(p Pod) string {
	switch {
	case !p.ExitedAt.IsZero() && p.ExitCode != 0 && p.ExitedAt.Sub(p.Created) <= l.Window:
		return fmt.Sprintf("a container exited with code %d", p.ExitCode)
	case p.Restarts > 0 && p.ExitedAt.Sub(p.Created) <= l.Window:
		return fmt.Sprintf("its containers restarted %d times", p.Restarts)
	case p.ReadyAt.IsZero() && l.Now.Sub(p.Created) > l.ToReady, !p.ReadyAt.IsZero() && p.ReadyAt.Sub(p.Created) > l.ToReady:
		return fmt.Sprintf("it was not ready within %s", l.ToReady)
	case !p.Ready && !p.ReadyAt.IsZero():
		return "it was ready and is not any more"
	}
	return ""
}

// oldFailed tells whether an old Pod failed in the window before the release. Its outcome does not change during the release, as the test
// needs it.
func (l Limits) oldFailed(p Pod) bool {
	return p.ReadyAt.IsZero() || !p.ExitedAt.IsZero() && !p.ExitedAt.After(l.Begun) && l.Begun.Sub(p.ExitedAt) <= l.Window
}

// Verdict is what the guard says.
type Verdict struct {
	// Bad says that the updated Pods do worse.
	Bad bool
	// Evidence is how many times more likely what is seen is if they do. The release is bad from 1/ErrorRate on.
	Evidence float64
	// Failed is how many of Updated Pods have failed.
	Failed, Updated int
	// Message says it in a sentence.
	Message string
}

// Judge compares the updated Pods with the old ones. Both are in the order of their creation, and the old ones are those from before the
// release, also if they are gone by now: the order and the old Pods must be the same each time. An updated Pod that has not failed yet
// counts as one that does not.
func Judge(updated, old []Pod, l Limits) Verdict {
	v := Verdict{Updated: len(updated)}
	failures := make([]bool, len(updated))
	first := ""
	for i, p := range updated {
		why := l.updatedFailed(p)
		if failures[i] = why != ""; !failures[i] {
			continue
		}
		v.Failed++
		if first == "" {
			first = fmt.Sprintf("Pod %s: %s", p.Name, why)
		}
	}
	before := make([]bool, len(old))
	oldFailures := 0
	for i, p := range old {
		if before[i] = l.oldFailed(p); before[i] {
			oldFailures++
		}
	}
	v.Evidence, v.Bad = evidence(failures, before)
	if v.Failed > 0 {
		v.Message = fmt.Sprintf("%d of %d updated Pods failed, and %d of %d old ones; %s",
			v.Failed, v.Updated, oldFailures, len(old), first)
	}
	return v
}
