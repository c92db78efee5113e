package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UntilDeadline returns how long what began at start may still take; a start of nil is now. It is not limited without a deadline. With a
// deadline of 60 seconds, 20 seconds after the start, 40 seconds are left.
func UntilDeadline(start *metav1.Time, deadlineSeconds *int64, now time.Time) (left time.Duration, limited bool) {
	if deadlineSeconds == nil {
		return 0, false
	}
	left = time.Duration(*deadlineSeconds) * time.Second
	if start != nil {
		left -= now.Sub(start.Time)
	}
	return left, true
}

// TTL says how long an object is kept after it has finished.
type TTL struct {
	// Seconds is nil for an object that is kept for ever.
	Seconds *int32
	// Finished is when the object finished; nil while that is not known.
	Finished *metav1.Time
	Now      time.Time
}

// Expire deletes the object once its time to live is over, and asks for another look then.
func (b *Builder) Expire(object Object, ttl TTL) {
	if ttl.Seconds == nil || ttl.Finished == nil {
		return
	}
	why := fmt.Sprintf("ttlSecondsAfterFinished %d", *ttl.Seconds)
	if left := ttl.Finished.Add(time.Duration(*ttl.Seconds) * time.Second).Sub(ttl.Now); left > 0 {
		b.Recheck(left, why)
		return
	}
	b.Do(Action{Verb: Delete, Concern: Tidy, Before: object, What: "delete", Why: why})
}
