// Package pull decides what a NodeImage holds: which rounds of pulling jobs request of a node, how the status of the node is read, and when
// a tag is removed.
//
// Its promise: a round is identified by repository, tag and version, and a status counts for the round of its version only; a tag that a
// running job wants is not removed; and no more nodes pull at the same time than a job allows.
//
//	requested (version n) ── Waiting ── Pulling ──┬── Succeeded ──┐
//	     │                                        └── Failed ─────┼── its TTL is over, or no job wants it any more: removed
//	     └── no status for ten minutes ── Failed ─────────────────┘   or, by a job that never completes: version n+1
package pull

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ErrFull is the reason why a NodeImage can't take another image.
var ErrFull = errors.New("the NodeImage lists as many images as it can, or as the jobs of one namespace may have it list")

// The most that a NodeImage can list of everything is in its schema. Of that the jobs of one namespace get three quarters, so that they
// can't keep those of others from being pulled.
const (
	maxTags, maxOwners = 256, 1024
	shareOf, shares    = 3, 4
)

// Want is what a job wants of every node.
type Want struct {
	Image Reference
	// Job is the job. Its reference is written into every NodeImage.
	Job *v1beta1.ImagePullJob
	// Credentials are those that the daemon of the node pulls with; Seal encrypts them.
	Credentials Credentials
	Seal        Sealer
	// Unsettled says that a Secret of the job can't be read now: rounds that go on keep the credentials that they have.
	Unsettled bool
	// Extra is added to the TTL of a tag.
	Extra time.Duration
	Now   time.Time
}

// State is how far one node has come for a job.
type State int

const (
	// NotRequested means that there is no round for the job or, by a job that never completes, a new one is due.
	NotRequested State = iota
	// Pulling means that the round has not ended yet.
	Pulling
	// Succeeded means that the node has the image.
	Succeeded
	// Failed means that the node has given up.
	Failed
)

// NodeState is what a NodeImage says about a job.
type NodeState struct {
	State State
	// Full says that the NodeImage lists too many images to take another one.
	Full bool
	// LacksCredentials says that the round goes on without the credentials of the job as they are now.
	LacksCredentials bool
	// LacksKey says that there are credentials, and that the daemon has published no key to seal them with.
	LacksKey bool
	// Stale says that the job still owns tags that it does not want any more.
	Stale bool
	// Status is the status of this round; nil when there is none.
	Status *v1beta1.ImageTagStatus
	// RepeatAt is when a new round becomes due; zero for never.
	RepeatAt time.Time
}

// StateOn reads a NodeImage.
func (w Want) StateOn(n *v1beta1.NodeImage) NodeState {
	var s NodeState
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
	s.Full = s.State == NotRequested && w.isFull(n)
	s.LacksKey = len(w.Credentials.text) > 0 && len(n.Status.CredentialsKey) == 0
	return s
}

// isFull reports whether the NodeImage has no place for the tag: for its repository, for another tag of it, or for another job that wants
// it.
func (w Want) isFull(n *v1beta1.NodeImage) bool {
	image, listed := n.Spec.Images[w.Image.Repository]
	i := slices.IndexFunc(image.Tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == w.Image.Tag })
	namespace, own := w.Job.Namespace, 0
	switch {
	case !listed:
		for _, other := range n.Spec.Images {
			if !slices.ContainsFunc(other.Tags, func(t v1beta1.ImageTagSpec) bool { return !isOnlyOf(&t, namespace) }) {
				own++
			}
		}
		return isOver(len(n.Spec.Images), own, v1beta1.MaxNodeImages)
	case i < 0:
		for j := range image.Tags {
			if isOnlyOf(&image.Tags[j], namespace) {
				own++
			}
		}
		return isOver(len(image.Tags), own, maxTags)
	case w.owns(&image.Tags[i]):
		return false
	default:
		for _, owner := range image.Tags[i].OwnerReferences {
			if owner.Namespace == namespace {
				own++
			}
		}
		return isOver(len(image.Tags[i].OwnerReferences), own, maxOwners)
	}
}

// isOver reports whether a list can take no more of a namespace: 192 of 256 if all are its own.
func isOver(all, own, most int) bool { return all >= most || own >= most*shareOf/shares }

// isOnlyOf reports whether only jobs of a namespace want a tag.
func isOnlyOf(tag *v1beta1.ImageTagSpec, namespace string) bool {
	others := func(r corev1.ObjectReference) bool { return r.Namespace != namespace }
	return len(tag.OwnerReferences) > 0 && !slices.ContainsFunc(tag.OwnerReferences, others)
}

// read fills in what the tag that the job wants says.
func (w Want) read(n *v1beta1.NodeImage, tag *v1beta1.ImageTagSpec, s *NodeState) {
	s.State, s.Status = Pulling, StatusOf(n, w.Image.Repository, tag)
	switch {
	case s.Status == nil:
	case s.Status.Phase == v1beta1.ImagePhaseSucceeded:
		s.State = Succeeded
	case s.Status.Phase == v1beta1.ImagePhaseFailed:
		s.State = Failed
	}
	if Repeats(w.Job) {
		if s.RepeatAt = expiry(tag, s.Status); !s.RepeatAt.IsZero() && !s.RepeatAt.After(w.Now) {
			s.State, s.RepeatAt = NotRequested, time.Time{}
		}
	}
	s.LacksCredentials = s.State == Pulling && !w.Unsettled && !w.Credentials.areOn(n, tag)
}

// StatusOf returns the status of the round of a tag; nil when there is none.
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

// expiry returns when the TTL of a tag is over; zero when its round has not ended, or it has no TTL.
func expiry(tag *v1beta1.ImageTagSpec, status *v1beta1.ImageTagStatus) time.Time {
	if status == nil || status.CompletionTime == nil || tag.PullPolicy == nil || tag.PullPolicy.TTLSecondsAfterFinished == nil {
		return time.Time{}
	}
	return status.CompletionTime.Add(time.Duration(*tag.PullPolicy.TTLSecondsAfterFinished) * time.Second)
}

func (w Want) owns(tag *v1beta1.ImageTagSpec) bool {
	return slices.ContainsFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool { return r.UID == w.Job.UID })
}

// Request returns the NodeImage with a new round of the tag, and without the job as an owner of tags that it does not want any more. A tag
// that another job requested gets a new round as well, which a node that has the image ends at once.
func (w Want) Request(n *v1beta1.NodeImage) (*v1beta1.NodeImage, error) {
	if w.StateOn(n).Full {
		return nil, ErrFull
	}
	after := w.Disown(n)
	if after.Spec.Images == nil {
		after.Spec.Images = map[string]v1beta1.ImageSpec{}
	}
	image := after.Spec.Images[w.Image.Repository]
	tag := v1beta1.ImageTagSpec{Tag: w.Image.Tag}
	i, found := slices.BinarySearchFunc(image.Tags, w.Image.Tag, func(t v1beta1.ImageTagSpec, name string) int {
		return cmp.Compare(t.Tag, name)
	})
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
	version, last := int64(-1), lastStatus(n, w.Image.Repository, w.Image.Tag)
	if last != nil {
		version = last.Version
	}
	if fresh || version == tag.Version && last.CompletionTime != nil {
		tag.Credentials = nil // whose they are has got what they were for
	}
	w.Credentials.put(n, w.Image.Repository, tag, w.Seal)
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
	tag.SandboxConfig = w.sandboxOf(tag)
	if !w.owns(tag) {
		tag.OwnerReferences = append(tag.OwnerReferences, corev1.ObjectReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ImagePullJob", Namespace: w.Job.Namespace, Name: w.Job.Name, UID: w.Job.UID,
		})
	}
}

// sandboxOf returns what the container runtime is told with a round of a tag: what the job says, unless the round is for jobs of other
// namespaces too and these say something else.
func (w Want) sandboxOf(tag *v1beta1.ImageTagSpec) *v1beta1.SandboxConfig {
	says := w.Job.Spec.SandboxConfig
	others := func(r corev1.ObjectReference) bool { return r.Namespace != w.Job.Namespace }
	if slices.ContainsFunc(tag.OwnerReferences, others) && !equality.Semantic.DeepEqual(tag.SandboxConfig, says) {
		return nil
	}
	return says.DeepCopy()
}

// Reseal returns the NodeImage with the credentials of the job as they are now, for a round that goes on.
func (w Want) Reseal(n *v1beta1.NodeImage) *v1beta1.NodeImage {
	after := n.DeepCopy()
	tags := after.Spec.Images[w.Image.Repository].Tags
	for i := range tags {
		if tags[i].Tag == w.Image.Tag {
			w.Credentials.put(n, w.Image.Repository, &tags[i], w.Seal)
		}
	}
	return after
}

// Disown returns the NodeImage without the job as an owner of tags that it does not want any more.
func (w Want) Disown(n *v1beta1.NodeImage) *v1beta1.NodeImage {
	after := n.DeepCopy()
	prune(after, func(repository string, tag *v1beta1.ImageTagSpec) bool {
		if !w.owns(tag) || repository == w.Image.Repository && tag.Tag == w.Image.Tag {
			return true
		}
		tag.OwnerReferences = slices.DeleteFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool { return r.UID == w.Job.UID })
		return len(tag.OwnerReferences) > 0
	})
	return after
}

// prune removes the tags that keep returns false for, which may also remove their owners, and repositories without tags. It reports whether
// a tag or an owner was removed.
func prune(n *v1beta1.NodeImage, keep func(repository string, tag *v1beta1.ImageTagSpec) bool) (changed bool) {
	for repository, image := range n.Spec.Images {
		kept := image.Tags[:0]
		for i := range image.Tags {
			tag, owners := &image.Tags[i], len(image.Tags[i].OwnerReferences)
			keeps := keep(repository, tag)
			if len(tag.OwnerReferences) < owners {
				dropOrphans(tag)
			}
			changed = changed || !keeps || len(tag.OwnerReferences) < owners
			if keeps {
				kept = append(kept, *tag)
			}
		}
		image.Tags = kept
		if len(kept) == 0 {
			delete(n.Spec.Images, repository)
			continue
		}
		n.Spec.Images[repository] = image
	}
	return changed
}

// dropOrphans removes the credentials of those who do not want the tag any more.
func dropOrphans(tag *v1beta1.ImageTagSpec) {
	tag.Credentials = slices.DeleteFunc(tag.Credentials, func(c v1beta1.SealedCredentials) bool {
		owns := func(r corev1.ObjectReference) bool { return string(r.UID) == c.Owner }
		return c.Owner != "" && !slices.ContainsFunc(tag.OwnerReferences, owns)
	})
}

// ReadySince returns since when a node has been Ready; false for a node that is not.
func ReadySince(n *corev1.Node) (time.Time, bool) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}
