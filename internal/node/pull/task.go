package pull

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// Round is one tag of one repository in one version.
type Round struct {
	Repository, Tag string
	Version         int64
}

// Image returns the reference to pull: nginx:1.27 or nginx@sha256:0123.
func (r Round) Image() string { return rules.Reference{Repository: r.Repository, Tag: r.Tag}.String() }

// Task is a round with its spec.
type Task struct {
	Round
	Spec v1beta1.ImageTagSpec
	// Sandbox is what the container runtime is told with the pull; nil for nothing.
	Sandbox *v1beta1.SandboxConfig
	// Began is when an earlier daemon started the round; zero if none did.
	Began time.Time
}

// namespace returns that of the first job that wants the tag, by which pulls take turns; empty for a tag of a user.
func (t Task) namespace() string {
	if len(t.Spec.OwnerReferences) == 0 {
		return ""
	}
	return t.Spec.OwnerReferences[0].Namespace
}

// Timeout returns how long one attempt may take.
func (t Task) Timeout() time.Duration {
	if p := t.Spec.PullPolicy; p != nil && ptr.Deref(p.TimeoutSeconds, 0) > 0 {
		return time.Duration(*p.TimeoutSeconds) * time.Second
	}
	return rules.DefaultTimeout
}

// Retries returns the number of attempts after the first.
func (t Task) Retries() int {
	if p := t.Spec.PullPolicy; p != nil && ptr.Deref(p.BackoffLimit, -1) >= 0 {
		return int(*p.BackoffLimit)
	}
	return rules.DefaultBackoffLimit
}

// Deadline returns when a round that started at some time fails; zero for never.
func (t Task) Deadline(began time.Time) time.Time {
	if t.Spec.PullPolicy == nil || t.Spec.PullPolicy.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return began.Add(time.Duration(min(*t.Spec.PullPolicy.ActiveDeadlineSeconds, math.MaxInt32)) * time.Second)
}

// Due returns the rounds of the spec that have not ended by the status, in the order in which they were requested, so that the last ones
// wait.
func Due(image *v1beta1.NodeImage) []Task {
	var due []Task
	for repository, spec := range image.Spec.Images {
		for _, tag := range spec.Tags {
			status := rules.StatusOf(image, repository, &tag)
			if status != nil && status.CompletionTime != nil {
				continue
			}
			task := Task{
				Round: Round{repository, tag.Tag, tag.Version}, Spec: tag, Sandbox: tag.SandboxConfig,
			}
			if len(tag.OwnerReferences) == 0 {
				task.Sandbox = spec.SandboxConfig // of the user who lists the tag
			}
			if status != nil && status.StartTime != nil {
				task.Began = status.StartTime.Time
			}
			due = append(due, task)
		}
	}
	slices.SortFunc(due, func(a, b Task) int {
		created, other := ptr.Deref(a.Spec.CreatedAt, metav1.Time{}), ptr.Deref(b.Spec.CreatedAt, metav1.Time{})
		return cmp.Or(created.Compare(other.Time), cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Tag, b.Tag))
	})
	return due
}

// Report returns the status of a NodeImage: of every round of its spec the newest status, which is the given one unless the round has ended
// by the NodeImage. Tags that are not in the spec any more are left out, and the rest of the status stays.
func Report(image *v1beta1.NodeImage, seen map[Round]v1beta1.ImageTagStatus) v1beta1.NodeImageStatus {
	out := v1beta1.NodeImage{Spec: image.Spec, Status: v1beta1.NodeImageStatus{FirstSyncStatus: image.Status.FirstSyncStatus}}
	for repository, spec := range image.Spec.Images {
		var tags []v1beta1.ImageTagStatus
		for _, tag := range spec.Tags {
			status := rules.StatusOf(image, repository, &tag)
			if now, ok := seen[Round{repository, tag.Tag, tag.Version}]; ok && (status == nil || status.CompletionTime == nil) {
				status = &now
			}
			if status != nil {
				tags = append(tags, *status)
			}
		}
		if len(tags) == 0 {
			continue
		}
		slices.SortFunc(tags, func(a, b v1beta1.ImageTagStatus) int { return cmp.Compare(a.Tag, b.Tag) })
		if out.Status.ImageStatuses == nil {
			out.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		out.Status.ImageStatuses[repository] = v1beta1.ImageStatus{Tags: tags}
	}
	rules.Count(&out)
	return out.Status
}

// underWay reports whether any round has not ended.
func underWay(seen map[Round]v1beta1.ImageTagStatus) bool {
	for _, status := range seen {
		if status.CompletionTime == nil {
			return true
		}
	}
	return false
}

// patchOf returns the merge patch from one status to another, on the condition that the object still has the resource version. It has all
// numbers, because an object that no daemon has reported on lacks those that are 0, and the repositories that differ.
func patchOf(resourceVersion string, before, after v1beta1.NodeImageStatus) ([]byte, error) {
	repositories := map[string]*v1beta1.ImageStatus{}
	for name := range before.ImageStatuses {
		if _, stays := after.ImageStatuses[name]; !stays {
			repositories[name] = nil
		}
	}
	for name, status := range after.ImageStatuses {
		if was, known := before.ImageStatuses[name]; !known || !equality.Semantic.DeepEqual(was, status) {
			repositories[name] = &status
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": resourceVersion},
		"status": map[string]any{
			"desired": after.Desired, "succeeded": after.Succeeded, "failed": after.Failed,
			"pulling": after.Pulling, "waiting": after.Waiting,
			"imageStatuses": repositories, "credentialsKey": after.CredentialsKey,
		},
	})
}

// Ended returns the rounds that have ended between two versions of a NodeImage.
func Ended(before, after *v1beta1.NodeImage) map[Round]v1beta1.ImageTagStatus {
	ended := map[Round]v1beta1.ImageTagStatus{}
	for repository, status := range after.Status.ImageStatuses {
		for _, tag := range status.Tags {
			was := rules.StatusOf(before, repository, &v1beta1.ImageTagSpec{Tag: tag.Tag, Version: tag.Version})
			if tag.CompletionTime != nil && (was == nil || was.CompletionTime == nil) {
				ended[Round{repository, tag.Tag, tag.Version}] = tag
			}
		}
	}
	return ended
}
