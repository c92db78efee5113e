// Package guard decides whether the updated Pods of a release do worse than the old ones, by what every cluster knows of Pods: exits of
// containers, readiness and the time to it.
//
// The test is sequential: it may be asked after every Pod, as often as one likes, and calls a good release bad with a probability of at
// most ErrorRate over the whole release. Each updated Pod is compared with a block of old ones. If all do equally well, whatever their
// common rate of failures is, the expected value of a block's factor
//
//	P(outcomes | updated fail with b, old with a) / P(outcomes | all fail with c),   c the mean of a and b over the block
//
// is at most 1: with one old Pod, c-a = b-c = d and x, y the ratios of the true rates of failure and success to those of c, it is
// (1-d(x-y))(1+d(x-y)). So the product over the blocks reaches 1/ErrorRate with a probability of at most ErrorRate (Ville's inequality).
//
// The outcome of an old Pod is fixed when the release begins, and whatever could make an updated Pod fail makes an old one fail, too: an
// exit soon after its own start or shortly before the release, or readiness that it lost. What is not known of an old Pod counts as a
// failure. So old Pods fail at least as often as updated ones do if both are as good.
package guard

import (
	"fmt"
	"slices"
	"time"
)

// ErrorRate is how many good releases the guard may stop.
const ErrorRate = 0.01

// Pod is what is known of a Pod.
type Pod struct {
	Name string
	// Since is when it was created, or last updated in place.
	Since time.Time
	Ready bool
	// ReadyChanged is when it became ready, or not ready, last; zero if that is not known.
	ReadyChanged time.Time
	// Restarts counts restarts of its containers. ExitCode and ExitedAt are of the last container that began after Since and ended; zero
	// if none has.
	Restarts int32
	ExitCode int32
	ExitedAt time.Time
}

// limits say when a Pod has failed.
type limits struct {
	// now is the time, begun when the release began.
	now, begun time.Time
	// window is how long an updated Pod is watched from Since on, and how long before the release an old one is looked back at.
	window time.Duration
	// toReady is how long a Pod may be not ready: see ToReady.
	toReady time.Duration
}

// Bounds of how long a Pod may be not ready.
const (
	// leastToReady is the shortest one, whatever old Pods took.
	leastToReady = 30 * time.Second
	// outlier is how many times the median an old Pod may have taken: one that took longer was ready before and lost it.
	outlier = 10
)

// ToReady returns how long a Pod may be not ready: three times what the slowest old Pod took to be ready, and at least 30 seconds. Only the
// last change of a Pod's readiness is known, so times of more than ten times the median are left out.
func ToReady(old []Pod) time.Duration {
	var took []time.Duration
	for _, p := range old {
		if p.Ready && !p.ReadyChanged.IsZero() {
			took = append(took, p.ReadyChanged.Sub(p.Since))
		}
	}
	if len(took) == 0 {
		return leastToReady
	}
	slices.Sort(took)
	most := max(outlier*took[(len(took)-1)/2], leastToReady)
	slowest := time.Duration(0)
	for _, d := range took {
		if d <= most {
			slowest = d
		}
	}
	return max(3*slowest, leastToReady).Round(time.Second)
}

// unready returns since when a Pod is not ready.
func (p Pod) unready() time.Time {
	if p.ReadyChanged.After(p.Since) {
		return p.ReadyChanged
	}
	return p.Since
}

// updatedFailed returns why an updated Pod has failed; empty while it has not.
func (l limits) updatedFailed(p Pod) string {
	switch {
	case l.soon(p) && p.ExitCode != 0:
		return fmt.Sprintf("a container exited with code %d", p.ExitCode)
	case l.soon(p):
		return "a container ended and was started again"
	case !p.Ready && p.unready().Sub(p.Since) <= l.window && l.now.Sub(p.unready()) > l.toReady:
		return fmt.Sprintf("it was not ready for %s", l.toReady)
	}
	return ""
}

// soon tells whether a container ended soon after the Pod's start.
func (l limits) soon(p Pod) bool {
	return !p.ExitedAt.IsZero() && p.ExitedAt.Sub(p.Since) <= l.window
}

// oldFailed tells whether an old Pod failed before the release.
func (l limits) oldFailed(p Pod) bool {
	switch {
	case l.soon(p), p.Restarts > 1: // the ends before the last one are not known
		return true
	case !p.ExitedAt.IsZero() && l.begun.Sub(p.ExitedAt) <= l.window:
		return true
	case !p.Ready:
		return l.begun.Sub(p.Since) > l.toReady
	}
	return p.ReadyChanged.Sub(p.Since) > l.toReady && l.begun.Sub(p.ReadyChanged) <= l.window
}

// next returns how long until a Pod that is not ready counts as failed; 0 if that needs no time to pass.
func (l limits) next(p Pod) time.Duration {
	if p.Ready || p.unready().Sub(p.Since) > l.window {
		return 0
	}
	return max(p.unready().Add(l.toReady).Sub(l.now)+time.Second, 0)
}
