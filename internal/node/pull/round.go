package pull

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// What a pull may take if nothing is said.
const (
	defaultTimeout = 600
	defaultRetries = 3
)

// Round is one tag of one repository in one version.
type Round struct {
	Repository, Tag string
	Version         int64
}

// Image returns the reference to pull: nginx:1.27 or nginx@sha256:0123.
func (r Round) Image() string {
	if strings.Contains(r.Tag, ":") { // a digest; a tag has no colon
		return r.Repository + "@" + r.Tag
	}
	return r.Repository + ":" + r.Tag
}

// Task is all that the spec says of a round.
type Task struct {
	Round
	Spec    v1beta1.ImageTagSpec
	Secrets []v1beta1.ReferenceObject
	Sandbox *v1beta1.SandboxConfig
	// Began is when an earlier life of the daemon began the round; zero if none did.
	Began time.Time
}

// Timeout returns how long one attempt may take.
func (t Task) Timeout() time.Duration {
	seconds := int32(defaultTimeout)
	if t.Spec.PullPolicy != nil {
		if said := ptr.Deref(t.Spec.PullPolicy.TimeoutSeconds, seconds); said > 0 {
			seconds = said
		}
	}
	return time.Duration(seconds) * time.Second
}

// Retries returns the number of attempts after the first.
func (t Task) Retries() int {
	if t.Spec.PullPolicy != nil {
		if limit := ptr.Deref(t.Spec.PullPolicy.BackoffLimit, -1); limit >= 0 {
			return int(limit)
		}
	}
	return defaultRetries
}

// Deadline returns when a round that began at some time is given up; zero when never.
func (t Task) Deadline(began time.Time) time.Time {
	if t.Spec.PullPolicy == nil || t.Spec.PullPolicy.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return began.Add(time.Duration(*t.Spec.PullPolicy.ActiveDeadlineSeconds) * time.Second)
}

// Due returns the rounds of the spec of which the status tells no end, in the order in which they were asked for, so that those wait that came
// last.
func Due(image *v1beta1.NodeImage) []Task {
	var due []Task
	for repository, spec := range image.Spec.Images {
		for _, tag := range spec.Tags {
			round := Round{repository, tag.Tag, tag.Version}
			said := told(image, round)
			if said != nil && said.CompletionTime != nil {
				continue
			}
			task := Task{Round: round, Spec: tag, Secrets: spec.PullSecrets, Sandbox: spec.SandboxConfig}
			if said != nil && said.StartTime != nil {
				task.Began = said.StartTime.Time
			}
			due = append(due, task)
		}
	}
	slices.SortFunc(due, func(a, b Task) int {
		return cmp.Or(asked(a).Compare(asked(b)), cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Tag, b.Tag))
	})
	return due
}

func asked(t Task) time.Time {
	if t.Spec.CreatedAt == nil {
		return time.Time{}
	}
	return t.Spec.CreatedAt.Time
}

// told returns what the status says of a round; nil when nothing.
func told(image *v1beta1.NodeImage, round Round) *v1beta1.ImageTagStatus {
	tags := image.Status.ImageStatuses[round.Repository].Tags
	for i := range tags {
		if tags[i].Tag == round.Tag && tags[i].Version == round.Version {
			return &tags[i]
		}
	}
	return nil
}
