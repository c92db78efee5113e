package nodeimage

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// eventPullImageFailed is the reason of events about rounds that did not end well. Wire: users' alerts match it.
const eventPullImageFailed = "PullImageFailed"

// Snapshot is all that one pass over a NodeImage may look at.
type Snapshot struct {
	Image *v1beta1.NodeImage
	// Node is nil where there is none.
	Node *corev1.Node
	// Owners says of each owner of a tag what has become of it.
	Owners map[types.UID]pull.Owner
	Now    time.Time
}

// Observe makes every read of a pass over a NodeImage.
func (c Config) Observe(ctx context.Context, r observe.Reader, image *v1beta1.NodeImage) (Snapshot, error) {
	s := Snapshot{Image: image, Owners: map[types.UID]pull.Owner{}, Now: c.Now()}
	var node corev1.Node
	err := r.Get(ctx, client.ObjectKey{Name: image.Name}, &node)
	switch {
	case err == nil && node.DeletionTimestamp == nil:
		s.Node = &node
	case err != nil && !apierrors.IsNotFound(err):
		return Snapshot{}, fmt.Errorf("reading node %s: %w", image.Name, err)
	}
	for _, of := range image.Spec.Images {
		for i := range of.Tags {
			for _, owner := range of.Tags[i].OwnerReferences {
				if _, known := s.Owners[owner.UID]; known {
					continue
				}
				if s.Owners[owner.UID], err = c.fate(ctx, r, owner); err != nil {
					return Snapshot{}, err
				}
			}
		}
	}
	return s, nil
}

// fate finds out what has become of an owner.
func (c Config) fate(ctx context.Context, r observe.Reader, owner corev1.ObjectReference) (pull.Owner, error) {
	if owner.Kind != "ImagePullJob" || !c.Jobs {
		return pull.Done, nil
	}
	var job v1beta1.ImagePullJob
	err := r.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, &job)
	switch {
	case apierrors.IsNotFound(err):
		return pull.Gone, nil
	case err != nil:
		return pull.Gone, fmt.Errorf("reading ImagePullJob %s/%s: %w", owner.Namespace, owner.Name, err)
	case job.UID != owner.UID || job.DeletionTimestamp != nil:
		return pull.Gone, nil
	case job.Status.CompletionTime != nil:
		return pull.Done, nil
	default:
		return pull.Running, nil
	}
}

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(s Snapshot) plan.Plan {
	b := plan.For("NodeImage " + s.Image.Name)
	if s.Image.DeletionTimestamp != nil {
		return b.Plan()
	}
	_, fake := s.Image.Labels[keys.FakeNodeImage]
	if s.Node == nil && !fake {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Scale, Before: s.Image, AnyVersion: true,
			What: "delete the NodeImage", Why: "the node is gone",
		})
		return b.Plan()
	}
	keep := pull.Keep(s.Image, func(r corev1.ObjectReference) pull.Owner { return s.Owners[r.UID] }, s.Now)
	after := keep.After
	if s.Node != nil && !maps.Equal(s.Node.Labels, s.Image.Labels) {
		if after == nil {
			after = s.Image.DeepCopy()
		}
		after.Labels = maps.Clone(s.Node.Labels)
	}
	if after != nil {
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: s.Image, After: after,
			What: "tidy up", Why: "nobody wants a tag any more, or the node has other labels",
		})
	}
	s.endSilence(b)
	recheck(b, keep.Next.Sub(s.Now), "a tag has been kept for long enough")
	return b.Plan()
}

// soonest is the least time between two looks that only the clock calls for.
const soonest = 3 * time.Second

// recheck asks for another look; moments that lie close together are answered by one.
func recheck(b *plan.Builder, wait time.Duration, why string) {
	if wait > 0 {
		b.Recheck(max(wait, soonest), why)
	}
}

// endSilence fails the rounds that the node has let pass.
func (s Snapshot) endSilence(b *plan.Builder) {
	silent, next := pull.Unanswered(s.Image, s.Now)
	recheck(b, next.Sub(s.Now), "the node has had its time to answer")
	if len(silent) == 0 {
		return
	}
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Settle, Before: s.Image, After: pull.Fail(s.Image, silent, s.Now),
		What: "fail pulls", Why: silent[0].Message,
	})
	for _, round := range silent {
		b.Hold(plan.Hold{Name: s.Image.Name, Why: fmt.Sprintf("%s:%s: %s", round.Repository, round.Tag.Tag, round.Message), Event: eventPullImageFailed})
	}
}
