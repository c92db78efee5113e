package pull

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ResponseTimeout is how long a node may leave a round without a status before the round has failed.
const ResponseTimeout = 10 * time.Minute

// Messages of rounds that ended without the node. Wire: users' alerts and tools match them.
const (
	MessageNoResponse = "node has not responded for a long time"
	MessageDeadline   = "pulling exceeds the activeDeadlineSeconds"
)

// OwnerState is whether an owner of a tag still wants it.
type OwnerState int

const (
	// Gone means that it does not exist any more.
	Gone OwnerState = iota
	// Done means that it exists and has completed. Owners of unknown kinds count as Done: they may exist.
	Done
	// Running means that it still wants the tag.
	Running
)

// References looks up what a NodeImage refers to.
type References struct {
	Owner func(corev1.ObjectReference) OwnerState
	// SecretGone reports whether a Secret is known not to exist.
	SecretGone func(v1beta1.ReferenceObject) bool
}

// CleanUp returns the NodeImage without what its spec holds too much of, nil if that is nothing, and when something more becomes due, zero
// for never.
//
// It removes tags that no existing job wants, and those whose TTL is over unless a running job wants them. Tags of users have no owner, and
// stay until their TTL is over. It also removes owners that are gone, and Secrets that are gone unless they were copied for jobs: those go
// with their image.
func CleanUp(n *v1beta1.NodeImage, refs References, now time.Time) (after *v1beta1.NodeImage, next time.Time) {
	after = n.DeepCopy()
	secrets := removeSecrets(after, refs.SecretGone)
	tags := prune(after, func(repository string, tag *v1beta1.ImageTagSpec) bool {
		if tag.CreatedAt == nil {
			return false
		}
		owned, running := len(tag.OwnerReferences) > 0, false
		tag.OwnerReferences = slices.DeleteFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool {
			state := refs.Owner(r)
			running = running || state == Running
			return state == Gone
		})
		if owned && len(tag.OwnerReferences) == 0 {
			return false
		}
		if running {
			return true
		}
		end := expiry(tag, StatusOf(n, repository, tag))
		if !end.IsZero() && !end.After(now) {
			return false
		}
		next = sooner(next, end)
		return true
	})
	if !secrets && !tags {
		return nil, next
	}
	return after, next
}

func removeSecrets(n *v1beta1.NodeImage, gone func(v1beta1.ReferenceObject) bool) (changed bool) {
	for repository, image := range n.Spec.Images {
		before := len(image.PullSecrets)
		image.PullSecrets = slices.DeleteFunc(image.PullSecrets, func(r v1beta1.ReferenceObject) bool {
			return r.Mode != v1beta1.ReferenceBatch && gone(r)
		})
		changed = changed || len(image.PullSecrets) < before
		n.Spec.Images[repository] = image
	}
	return changed
}

// TimedOut is a round that the node has not ended in time.
type TimedOut struct {
	Repository string
	Tag        v1beta1.ImageTagSpec
	Message    string
}

// FindTimedOut returns the rounds that the node has not ended in time: those without a status for ten minutes, and those with a deadline
// that have not ended ten minutes after it. Next is when the next one times out; zero for never.
func FindTimedOut(n *v1beta1.NodeImage, now time.Time) (found []TimedOut, next time.Time) {
	for repository, image := range n.Spec.Images {
		for i := range image.Tags {
			tag := &image.Tags[i]
			due, message := timeoutOf(tag, StatusOf(n, repository, tag))
			switch {
			case due.IsZero():
			case due.After(now):
				next = sooner(next, due)
			default:
				found = append(found, TimedOut{Repository: repository, Tag: *tag, Message: message})
			}
		}
	}
	slices.SortFunc(found, func(a, b TimedOut) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Tag.Tag, b.Tag.Tag))
	})
	return found, next
}

// timeoutOf returns when a round times out, and the message that it fails with; zero for never.
func timeoutOf(tag *v1beta1.ImageTagSpec, status *v1beta1.ImageTagStatus) (time.Time, string) {
	switch {
	case tag.CreatedAt == nil:
		return time.Time{}, ""
	case status == nil:
		return tag.CreatedAt.Add(ResponseTimeout), MessageNoResponse
	case status.CompletionTime == nil && tag.PullPolicy != nil && tag.PullPolicy.ActiveDeadlineSeconds != nil:
		limit := time.Duration(min(*tag.PullPolicy.ActiveDeadlineSeconds, math.MaxInt32)) * time.Second
		return tag.CreatedAt.Add(limit + ResponseTimeout), MessageDeadline
	default:
		return time.Time{}, ""
	}
}

// Fail returns the NodeImage with these rounds failed, and counted.
func Fail(n *v1beta1.NodeImage, rounds []TimedOut, now time.Time) *v1beta1.NodeImage {
	after := n.DeepCopy()
	at := metav1.NewTime(now)
	for _, round := range rounds {
		if after.Status.ImageStatuses == nil {
			after.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		failed := v1beta1.ImageTagStatus{
			Tag: round.Tag.Tag, Phase: v1beta1.ImagePhaseFailed, Version: round.Tag.Version, CompletionTime: &at, Message: round.Message,
		}
		image := after.Status.ImageStatuses[round.Repository]
		i := slices.IndexFunc(image.Tags, func(t v1beta1.ImageTagStatus) bool { return t.Tag >= round.Tag.Tag })
		switch {
		case i < 0:
			image.Tags = append(image.Tags, failed)
		case image.Tags[i].Tag == round.Tag.Tag:
			if image.Tags[i].Version == round.Tag.Version {
				failed.StartTime = image.Tags[i].StartTime
			}
			image.Tags[i] = failed
		default:
			image.Tags = slices.Insert(image.Tags, i, failed)
		}
		after.Status.ImageStatuses[round.Repository] = image
	}
	Count(after)
	return after
}

// Count sets the numbers of tags in the status.
func Count(n *v1beta1.NodeImage) {
	s := &n.Status
	s.Desired, s.Succeeded, s.Failed, s.Pulling, s.Waiting = 0, 0, 0, 0, 0
	for repository, image := range n.Spec.Images {
		for i := range image.Tags {
			s.Desired++
			status := StatusOf(n, repository, &image.Tags[i])
			if status == nil {
				continue
			}
			switch status.Phase {
			case v1beta1.ImagePhaseSucceeded:
				s.Succeeded++
			case v1beta1.ImagePhaseFailed:
				s.Failed++
			case v1beta1.ImagePhaseWaiting:
				s.Waiting++
			default:
				s.Pulling++
			}
		}
	}
}

// sooner returns the earlier of two moments; one that is zero never comes.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
