package pull

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/imageref"
)

// ErrFull is the reason why a node can't be asked for another image.
var ErrFull = errors.New("the NodeImage lists 256 images already, which is the most it can")

// Want is what a job wants of every node.
type Want struct {
	Image imageref.Reference
	// Job is the job. Its reference is written into every NodeImage.
	Job *v1beta1.ImagePullJob
	// Secrets are the Secrets that the daemon of the node finds credentials in.
	Secrets []v1beta1.ReferenceObject
	// Extra is how much longer than the job needs it a tag is kept.
	Extra time.Duration
	Now   time.Time
}

// State is how far one node has come for a job.
type State int

const (
	// Unasked means that the node has not been asked, or, by a job that never completes, has to be asked again.
	Unasked State = iota
	// Pulling means that the node has been asked and has not ended yet.
	Pulling
	// Succeeded means that the node has the image.
	Succeeded
	// Failed means that the node has given up.
	Failed
)

// Sight is what a NodeImage says about a job.
type Sight struct {
	State State
	// Full means that the node can't be asked: its NodeImage has no room for another image.
	Full bool
	// LacksSecrets means that the node was asked and does not know all Secrets yet.
	LacksSecrets bool
	// Stale means that the job still asks for tags that it does not want any more.
	Stale bool
	// Status is the answer of the node in this round; nil when there is none.
	Status *v1beta1.ImageTagStatus
	// Again is when the node has to be asked again; zero for never.
	Again time.Time
}

// On reads a NodeImage.
func (w Want) On(n *v1beta1.NodeImage) Sight {
	var s Sight
	for repository := range n.Spec.Images {
		for i := range n.Spec.Images[repository].Tags {
			tag := &n.Spec.Images[repository].Tags[i]
			if !w.owns(tag) {
				continue
			}
			if repository != w.Image.Repository || tag.Tag != w.Image.Tag {
				s.Stale = true
				continue
			}
			w.read(n, tag, &s)
		}
	}
	_, listed := n.Spec.Images[w.Image.Repository]
	s.Full = s.State == Unasked && !listed && len(n.Spec.Images) >= v1beta1.MaxNodeImages
	return s
}

// read judges the tag that the job wants.
func (w Want) read(n *v1beta1.NodeImage, tag *v1beta1.ImageTagSpec, s *Sight) {
	s.State, s.Status = Pulling, StatusOf(n, w.Image.Repository, tag)
	switch {
	case s.Status == nil:
	case s.Status.Phase == v1beta1.ImagePhaseSucceeded:
		s.State = Succeeded
	case s.Status.Phase == v1beta1.ImagePhaseFailed:
		s.State = Failed
	}
	if Repeats(w.Job) {
		if s.Again = expiry(tag, s.Status); !s.Again.IsZero() && !s.Again.After(w.Now) {
			s.State, s.Again = Unasked, time.Time{}
		}
	}
	s.LacksSecrets = s.State == Pulling && !contains(n.Spec.Images[w.Image.Repository].PullSecrets, w.Secrets)
}

// StatusOf returns the answer of the node to this round; nil when there is none.
func StatusOf(n *v1beta1.NodeImage, repository string, tag *v1beta1.ImageTagSpec) *v1beta1.ImageTagStatus {
	status := lastStatus(n, repository, tag.Tag)
	if status == nil || status.Version != tag.Version {
		return nil
	}
	return status
}

func lastStatus(n *v1beta1.NodeImage, repository, tag string) *v1beta1.ImageTagStatus {
	tags := n.Status.ImageStatuses[repository].Tags
	i := slices.IndexFunc(tags, func(t v1beta1.ImageTagStatus) bool { return t.Tag == tag })
	if i < 0 {
		return nil
	}
	return &tags[i]
}

// expiry returns when a tag has been finished for as long as it is kept; zero when it is not finished, or kept for ever.
func expiry(tag *v1beta1.ImageTagSpec, status *v1beta1.ImageTagStatus) time.Time {
	if status == nil || status.CompletionTime == nil || tag.PullPolicy == nil || tag.PullPolicy.TTLSecondsAfterFinished == nil {
		return time.Time{}
	}
	return status.CompletionTime.Add(time.Duration(*tag.PullPolicy.TTLSecondsAfterFinished) * time.Second)
}

func (w Want) owns(tag *v1beta1.ImageTagSpec) bool {
	return slices.ContainsFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool { return r.UID == w.Job.UID })
}

// Ask returns what the NodeImage says once the job has asked: the tag is listed, a round of it is due, and the job is no longer noted at tags that
// it does not want any more. A tag that another job asked for gets a new round, which a node that has the image answers at once.
func (w Want) Ask(n *v1beta1.NodeImage) (*v1beta1.NodeImage, error) {
	if w.On(n).Full {
		return nil, ErrFull
	}
	after := n.DeepCopy()
	w.drop(after)
	if after.Spec.Images == nil {
		after.Spec.Images = map[string]v1beta1.ImageSpec{}
	}
	image := after.Spec.Images[w.Image.Repository]
	image.SandboxConfig = w.Job.Spec.SandboxConfig.DeepCopy()
	image.PullSecrets = union(image.PullSecrets, w.Secrets)
	tag := v1beta1.ImageTagSpec{Tag: w.Image.Tag}
	i, found := slices.BinarySearchFunc(image.Tags, w.Image.Tag, func(t v1beta1.ImageTagSpec, name string) int { return cmp.Compare(t.Tag, name) })
	if found {
		tag = image.Tags[i]
	} else {
		image.Tags = slices.Insert(image.Tags, i, tag)
	}
	w.newRound(n, &tag)
	image.Tags[i] = tag
	after.Spec.Images[w.Image.Repository] = image
	return after, nil
}

func (w Want) newRound(n *v1beta1.NodeImage, tag *v1beta1.ImageTagSpec) {
	fresh := tag.CreatedAt == nil
	version := int64(-1)
	if last := lastStatus(n, w.Image.Repository, w.Image.Tag); last != nil {
		version = last.Version
	}
	if !fresh {
		version = max(version, tag.Version)
	}
	tag.Version = version + 1
	now := metav1.NewTime(w.Now)
	tag.CreatedAt = &now
	policy := Policy(w.Job, w.Extra, n.Name+"/"+string(w.Job.UID))
	if fresh || w.owns(tag) {
		tag.PullPolicy = policy
	} else {
		tag.PullPolicy = merge(tag.PullPolicy, policy)
	}
	tag.ImagePullPolicy = w.Job.Spec.ImagePullPolicy
	if !w.owns(tag) {
		tag.OwnerReferences = append(tag.OwnerReferences, corev1.ObjectReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ImagePullJob", Namespace: w.Job.Namespace, Name: w.Job.Name, UID: w.Job.UID,
		})
	}
}

// AddSecrets returns what the NodeImage says once it lists all Secrets of the job, for a round that goes on.
func (w Want) AddSecrets(n *v1beta1.NodeImage) *v1beta1.NodeImage {
	after := n.DeepCopy()
	image := after.Spec.Images[w.Image.Repository]
	image.PullSecrets = union(image.PullSecrets, w.Secrets)
	after.Spec.Images[w.Image.Repository] = image
	return after
}

// Drop returns what the NodeImage says once the job is no longer noted at tags that it does not want any more.
func (w Want) Drop(n *v1beta1.NodeImage) *v1beta1.NodeImage {
	after := n.DeepCopy()
	w.drop(after)
	return after
}

func (w Want) drop(n *v1beta1.NodeImage) {
	prune(n, func(repository string, tag *v1beta1.ImageTagSpec) bool {
		if !w.owns(tag) || repository == w.Image.Repository && tag.Tag == w.Image.Tag {
			return true
		}
		tag.OwnerReferences = slices.DeleteFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool { return r.UID == w.Job.UID })
		return len(tag.OwnerReferences) > 0
	})
}

// prune drops the tags that keep says no to, which may also change them, and repositories without tags. It reports whether any was dropped.
func prune(n *v1beta1.NodeImage, keep func(repository string, tag *v1beta1.ImageTagSpec) bool) bool {
	dropped := false
	for repository, image := range n.Spec.Images {
		before := len(image.Tags)
		kept := image.Tags[:0]
		for i := range image.Tags {
			if keep(repository, &image.Tags[i]) {
				kept = append(kept, image.Tags[i])
			}
		}
		image.Tags = kept
		dropped = dropped || len(kept) < before
		if len(kept) == 0 {
			delete(n.Spec.Images, repository)
			continue
		}
		n.Spec.Images[repository] = image
	}
	return dropped
}

func contains(have, want []v1beta1.ReferenceObject) bool {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(r v1beta1.ReferenceObject) bool { return r.Namespace == w.Namespace && r.Name == w.Name }) {
			return false
		}
	}
	return true
}

func union(have, more []v1beta1.ReferenceObject) []v1beta1.ReferenceObject {
	for _, r := range more {
		if !contains(have, []v1beta1.ReferenceObject{r}) {
			have = append(have, r)
		}
	}
	return have
}
