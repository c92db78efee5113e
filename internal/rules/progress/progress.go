// Package progress judges whether a rollout comes on.
//
// The time without progress runs from the moment at which the judgement was last new: at another reason, a new revision, or more Pods that have come
// as far as they should. So neither a pause nor a partition that is reached counts against the deadline.
package progress

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The reasons that all kinds share. Those that name the kind are "<kind>Available", "<kind>Paused" and "<kind>Updated".
const (
	// PartitionAvailable means that as many Pods as the partition allows are updated and available.
	PartitionAvailable = "ProgressPartitionAvailable"
	// DeadlineExceeded means that there was no progress for as long as the user is willing to wait.
	DeadlineExceeded = "ProgressDeadlineExceeded"
)

// Rollout is what is seen of a rollout.
type Rollout struct {
	// Kind of the workload, such as CloneSet.
	Kind string
	// Revision is the name of the update revision.
	Revision string
	// DeadlineSeconds is how long there may be no progress; nothing is judged where it is nil or the largest number that there is.
	DeadlineSeconds *int32
	// Complete means that all Pods are updated and available, Paused that the user has stopped the update, and Reached that all Pods are that the
	// partition allows.
	Complete, Paused, Reached bool
	// Moved means that something has come on since the last judgement.
	Moved bool
	Now   time.Time
}

// Counts are the numbers of a status by which a rollout comes on.
type Counts struct {
	// Revision is the name of the update revision.
	Revision string
	// Updated, Ready, UpdatedReady and UpdatedAvailable are how many Pods are so.
	Updated, Ready, UpdatedReady, UpdatedAvailable int32
}

// Beyond reports whether a rollout has come on since the numbers were those before.
func (c Counts) Beyond(before Counts) bool {
	return c.Revision != before.Revision || c.Updated > before.Updated || c.Ready > before.Ready ||
		c.UpdatedReady > before.UpdatedReady || c.UpdatedAvailable > before.UpdatedAvailable
}

// Judgement is what is said of a rollout.
type Judgement struct {
	// Status is False when the deadline is exceeded; empty when there is nothing to say.
	Status          corev1.ConditionStatus
	Reason, Message string
	// Since is when the judgement, or the progress that it tells of, was last new.
	Since time.Time
}

// Judge returns what is to be said after what was said last, and the time until that changes by itself; zero when it does not.
func Judge(r Rollout, last Judgement) (Judgement, time.Duration) {
	if r.DeadlineSeconds == nil || *r.DeadlineSeconds == math.MaxInt32 {
		return Judgement{}, 0
	}
	now := Judgement{Status: corev1.ConditionTrue, Since: r.Now}
	var wait time.Duration
	switch updated := r.Kind + "Updated"; {
	case r.Complete:
		now.Reason, now.Message = r.Kind+"Available", r.Kind+" is available"
	case r.Paused:
		now.Reason, now.Message = r.Kind+"Paused", r.Kind+" is paused"
	case r.Reached:
		now.Reason, now.Message = PartitionAvailable, r.Kind+" has been paused due to partition ready"
	case r.Moved || last.Reason != updated && last.Reason != DeadlineExceeded:
		now.Reason, now.Message = updated, r.Kind+" is progressing"
		return now, r.left(r.Now)
	default:
		now.Reason, now.Message, wait = updated, r.Kind+" is progressing", r.left(last.Since)
		if wait == 0 || last.Reason == DeadlineExceeded {
			now.Status, now.Reason, wait = corev1.ConditionFalse, DeadlineExceeded, 0
			now.Message = fmt.Sprintf("%s revision %s has timed out progressing", r.Kind, r.Revision)
		}
	}
	if now.Status == last.Status && now.Reason == last.Reason {
		return last, wait
	}
	return now, wait
}

// left returns the time until the deadline, and a second more so that the look then comes late enough; zero when it is over.
func (r Rollout) left(since time.Time) time.Duration {
	left := since.Add(time.Duration(*r.DeadlineSeconds) * time.Second).Sub(r.Now)
	if left < 0 {
		return 0
	}
	return left + time.Second
}
