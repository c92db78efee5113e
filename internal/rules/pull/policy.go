package pull

import (
	"hash/fnv"
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// What a pull has where the job does not say.
const (
	DefaultTimeout      = 600 * time.Second
	DefaultBackoffLimit = 3
)

// A job that never completes has each node pull again after about a day. A pull of such a job may take no longer than half an hour, or than one
// attempt if that may take longer.
const (
	repeatAfter    = 24 * time.Hour
	repeatSpread   = 10 * time.Minute
	repeatDeadline = 30 * time.Minute
	keepSpread     = 300 * time.Second
)

// Timeout returns how long one attempt of a job's pull may take.
func Timeout(p *v1beta1.PullPolicy) time.Duration {
	if p == nil || p.TimeoutSeconds == nil {
		return DefaultTimeout
	}
	return time.Duration(*p.TimeoutSeconds) * time.Second
}

// backoffLimit returns how often a node tries again.
func backoffLimit(p *v1beta1.PullPolicy) int32 {
	if p == nil || p.BackoffLimit == nil || *p.BackoffLimit < 0 {
		return DefaultBackoffLimit
	}
	return *p.BackoffLimit
}

// Repeats reports whether a job never completes.
func Repeats(job *v1beta1.ImagePullJob) bool {
	return job.Spec.CompletionPolicy.Type == v1beta1.NeverComplete
}

// Policy returns the limits of the pull of a job on one node. Extra is how much longer than the job needs it a tag is kept; seed spreads the
// moments at which the tags of many nodes are taken off.
//
// A job that completes keeps a tag for T + extra + 0..299 s, where T is its own time to live, or else its deadline, or else all its retries: with
// the defaults 600 s x 3 + 300 s + 0..299 s = 2100..2399 s. One that never completes keeps it for a day, ten minutes more or less.
func Policy(job *v1beta1.ImagePullJob, extra time.Duration, seed string) *v1beta1.ImageTagPullPolicy {
	spec := job.Spec.PullPolicy
	timeout, retries := int32(Timeout(spec).Seconds()), backoffLimit(spec)
	out := &v1beta1.ImageTagPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &retries}
	completion := job.Spec.CompletionPolicy
	var keep time.Duration
	switch {
	case Repeats(job):
		keep = repeatAfter - repeatSpread + spread(seed, 2*repeatSpread)
		deadline := max(int64(repeatDeadline.Seconds()), int64(timeout))
		out.ActiveDeadlineSeconds = &deadline
	case completion.TTLSecondsAfterFinished != nil:
		keep = time.Duration(*completion.TTLSecondsAfterFinished)*time.Second + extra + spread(seed, keepSpread)
	case completion.ActiveDeadlineSeconds != nil:
		keep = time.Duration(*completion.ActiveDeadlineSeconds)*time.Second + extra + spread(seed, keepSpread)
	default:
		keep = Timeout(spec)*time.Duration(retries) + extra + spread(seed, keepSpread)
	}
	if !Repeats(job) && completion.ActiveDeadlineSeconds != nil {
		deadline := *completion.ActiveDeadlineSeconds
		out.ActiveDeadlineSeconds = &deadline
	}
	seconds := int32(min(keep, maxKeep) / time.Second)
	out.TTLSecondsAfterFinished = &seconds
	return out
}

// maxKeep is the longest time that fits the field, in whole seconds.
const maxKeep = (1<<31 - 1) * time.Second

// spread returns a whole number of seconds from 0 to below width, the same for the same seed.
func spread(seed string, width time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed)) // a hash does not fail
	return time.Duration(h.Sum32()%uint32(width/time.Second)) * time.Second
}

// merge returns the limits of a round that two jobs want: the longer times, and the retries of the one that came last.
func merge(before, last *v1beta1.ImageTagPullPolicy) *v1beta1.ImageTagPullPolicy {
	if before == nil {
		return last
	}
	out := last.DeepCopy()
	longer := func(a, b *int32) *int32 {
		if a != nil && (b == nil || *a > *b) {
			return a
		}
		return b
	}
	out.TimeoutSeconds = longer(before.TimeoutSeconds, last.TimeoutSeconds)
	out.TTLSecondsAfterFinished = longer(before.TTLSecondsAfterFinished, last.TTLSecondsAfterFinished)
	switch {
	case before.ActiveDeadlineSeconds == nil || last.ActiveDeadlineSeconds == nil:
		out.ActiveDeadlineSeconds = nil
	default:
		deadline := max(*before.ActiveDeadlineSeconds, *last.ActiveDeadlineSeconds)
		out.ActiveDeadlineSeconds = &deadline
	}
	return out
}
