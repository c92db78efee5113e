package pull

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Silence is how long a node may say nothing of a round before it has failed.
const Silence = 10 * time.Minute

// Messages of rounds that ended without the node. Wire: users' alerts and tools match them.
const (
	MessageSilent   = "node has not responded for a long time"
	MessageDeadline = "pulling exceeds the activeDeadlineSeconds"
)

// Owner says what has become of an owner of a tag.
type Owner int

const (
	// Gone means that it does not exist any more.
	Gone Owner = iota
	// Done means that it exists and has completed.
	Done
	// Running means that it still wants the tag. Owners of unknown kinds count as Done: nobody knows whether they are gone.
	Running
)

// Upkeep is what has to be done about a NodeImage that no job does.
type Upkeep struct {
	// After is the NodeImage as its spec should be; nil when it is right.
	After *v1beta1.NodeImage
	// Next is when something more becomes due; zero for never.
	Next time.Time
}

// Others says what has become of what a NodeImage refers to.
type Others struct {
	Owner func(corev1.ObjectReference) Owner
	// Lost reports whether a Secret is known to be gone.
	Lost func(v1beta1.ReferenceObject) bool
}

// Keep judges the spec: tags are taken off that no existing job wants, and those that have been finished for as long as they are kept. Tags of
// users stay until the latter; one that a running job wants stays. Owners that are gone are taken off the others, and so are Secrets that are,
// unless they were copied for jobs: those go with their image.
func Keep(n *v1beta1.NodeImage, others Others, now time.Time) Upkeep {
	after := n.DeepCopy()
	var u Upkeep
	changed := dropSecrets(after, others.Lost)
	changed = prune(after, func(repository string, tag *v1beta1.ImageTagSpec) bool {
		if tag.CreatedAt == nil {
			return false
		}
		owned, running := len(tag.OwnerReferences) > 0, false
		tag.OwnerReferences = slices.DeleteFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool {
			is := others.Owner(r)
			running = running || is == Running
			return is == Gone
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
		u.Next = sooner(u.Next, end)
		return true
	}) || changed
	if changed || shortened(n, after) {
		u.After = after
	}
	return u
}

func dropSecrets(n *v1beta1.NodeImage, lost func(v1beta1.ReferenceObject) bool) bool {
	dropped := false
	for repository, image := range n.Spec.Images {
		before := len(image.PullSecrets)
		image.PullSecrets = slices.DeleteFunc(image.PullSecrets, func(r v1beta1.ReferenceObject) bool { return r.Mode != v1beta1.ReferenceBatch && lost(r) })
		dropped = dropped || len(image.PullSecrets) < before
		n.Spec.Images[repository] = image
	}
	return dropped
}

// shortened reports whether a tag lost owners.
func shortened(before, after *v1beta1.NodeImage) bool {
	owners := func(n *v1beta1.NodeImage) int {
		count := 0
		for _, image := range n.Spec.Images {
			for i := range image.Tags {
				count += len(image.Tags[i].OwnerReferences)
			}
		}
		return count
	}
	return owners(before) != owners(after)
}

// Silent is a round that a node has let pass.
type Silent struct {
	Repository string
	Tag        v1beta1.ImageTagSpec
	Message    string
}

// Unanswered finds the rounds that the node has let pass: those without a word of it for ten minutes, and those with a deadline that were not
// finished ten minutes after it. Next is when the next one has; zero for never.
func Unanswered(n *v1beta1.NodeImage, now time.Time) (found []Silent, next time.Time) {
	for repository, image := range n.Spec.Images {
		for i := range image.Tags {
			tag := &image.Tags[i]
			due, message := patience(tag, StatusOf(n, repository, tag))
			switch {
			case due.IsZero():
			case due.After(now):
				next = sooner(next, due)
			default:
				found = append(found, Silent{Repository: repository, Tag: *tag, Message: message})
			}
		}
	}
	slices.SortFunc(found, func(a, b Silent) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Tag.Tag, b.Tag.Tag))
	})
	return found, next
}

// patience returns until when the node has time, and what is said of it then; zero when nothing is expected of it.
func patience(tag *v1beta1.ImageTagSpec, status *v1beta1.ImageTagStatus) (time.Time, string) {
	switch {
	case tag.CreatedAt == nil:
		return time.Time{}, ""
	case status == nil:
		return tag.CreatedAt.Add(Silence), MessageSilent
	case status.CompletionTime == nil && tag.PullPolicy != nil && tag.PullPolicy.ActiveDeadlineSeconds != nil:
		return tag.CreatedAt.Add(time.Duration(*tag.PullPolicy.ActiveDeadlineSeconds)*time.Second + Silence), MessageDeadline
	default:
		return time.Time{}, ""
	}
}

// Fail returns what the NodeImage says once these rounds have failed, its counts included.
func Fail(n *v1beta1.NodeImage, rounds []Silent, now time.Time) *v1beta1.NodeImage {
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

// Count writes the numbers of tags into the status.
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
