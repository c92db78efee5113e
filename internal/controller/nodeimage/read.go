package nodeimage

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// NodeSnapshot is all that one pass over a node reads.
type NodeSnapshot struct {
	Node *corev1.Node
	// Has means that the node has a NodeImage.
	Has bool
	Now time.Time
	// Delay is how long a node must have been Ready before it gets a NodeImage.
	Delay time.Duration
}

// readNode makes every read of a pass over a node.
func (o Options) readNode(ctx context.Context, r loop.Reads, node *corev1.Node) (NodeSnapshot, error) {
	image, err := observe.Find(ctx, r, client.ObjectKey{Name: node.Name}, &v1beta1.NodeImage{})
	return NodeSnapshot{Node: node, Has: image != nil, Now: r.Now, Delay: o.CreationDelay}, err
}

// Snapshot is all that one pass over a NodeImage reads.
type Snapshot struct {
	Image *v1beta1.NodeImage
	// Node is nil where there is none.
	Node *corev1.Node
	// Owners says of each owner of a tag what has become of it.
	Owners map[types.UID]pull.OwnerState
	// Secrets are those that users name beside images that are being pulled, as far as they can be read; Lost are those that are gone.
	Secrets map[types.NamespacedName]*corev1.Secret
	Lost    map[types.NamespacedName]bool
	Now     time.Time
	// Seal encrypts credentials for the daemon of the node.
	Seal pull.Sealer `json:"-"`
}

// reader makes the reads of passes over NodeImages.
type reader struct {
	Options
	// gone are jobs that were read live and are gone: a job may have asked thousands of nodes, and one read is enough for all of them.
	gone *observe.Kept[types.UID, bool]
}

// goneFor is for how long it is remembered that a job is gone.
const goneFor = 10 * time.Minute

// image makes every read of a pass over a NodeImage. What a cache lacks is read live before it counts as gone: caches of several kinds are
// not of the same moment, least of all those of a manager that has just taken over, and what is removed from a NodeImage ends pulls.
func (o reader) image(ctx context.Context, r loop.Reads, image *v1beta1.NodeImage) (Snapshot, error) {
	s := Snapshot{
		Image: image, Owners: map[types.UID]pull.OwnerState{}, Now: r.Now, Seal: o.Seal,
		Secrets: map[types.NamespacedName]*corev1.Secret{}, Lost: map[types.NamespacedName]bool{},
	}
	var err error
	if s.Node, err = node(ctx, r, image); err != nil {
		return Snapshot{}, err
	}
	for repository, of := range image.Spec.Images {
		o.readSecrets(ctx, repository, &s)
		for i := range of.Tags {
			for _, owner := range of.Tags[i].OwnerReferences {
				if _, known := s.Owners[owner.UID]; known {
					continue
				}
				if s.Owners[owner.UID], err = o.ownerState(ctx, r, owner); err != nil {
					return Snapshot{}, err
				}
			}
		}
	}
	return s, nil
}

// node returns the node of a NodeImage; nil when it is gone or being deleted.
func node(ctx context.Context, r loop.Reads, image *v1beta1.NodeImage) (*corev1.Node, error) {
	key := client.ObjectKey{Name: image.Name}
	node, err := observe.Find(ctx, r, key, &corev1.Node{})
	if _, fake := image.Labels[keys.FakeNodeImage]; err == nil && node == nil && !fake {
		node, err = observe.Find(ctx, r.Live, key, &corev1.Node{})
	}
	if node != nil && node.DeletionTimestamp != nil {
		node = nil
	}
	return node, err
}

// readSecrets reads the Secrets that users name for a repository, as far as the manager may: those of one namespace, so that whoever may
// write NodeImages can't have others read.
func (o reader) readSecrets(ctx context.Context, repository string, s *Snapshot) {
	image := s.Image.Spec.Images[repository]
	pulls := slices.ContainsFunc(image.Tags, func(t v1beta1.ImageTagSpec) bool { return pull.IsUsers(s.Image, repository, &t) })
	for _, of := range image.PullSecrets {
		if of.Mode == v1beta1.ReferenceBatch || of.Namespace != o.ConfigNamespace {
			continue
		}
		key := keyOf(of)
		secret, err := o.Sources.Get(ctx, key)
		if err == nil && pulls && pull.HoldsCredentials(secret) {
			s.Secrets[key] = secret
		}
		s.Lost[key] = apierrors.IsNotFound(err)
	}
}

func keyOf(r v1beta1.ReferenceObject) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// ownerState finds out what has become of an owner. Owners that this manager does not reconcile count as done.
func (o reader) ownerState(ctx context.Context, r loop.Reads, owner corev1.ObjectReference) (pull.OwnerState, error) {
	if owner.Kind != "ImagePullJob" || !o.Jobs || o.Namespace != "" && owner.Namespace != o.Namespace {
		return pull.Done, nil
	}
	if _, gone := o.gone.Get(owner.UID); gone {
		return pull.Gone, nil
	}
	key := client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}
	job, err := observe.Find(ctx, r, key, &v1beta1.ImagePullJob{})
	if err == nil && (job == nil || job.UID != owner.UID) {
		job, err = observe.Find(ctx, r.Live, key, &v1beta1.ImagePullJob{})
	}
	switch {
	case err != nil:
		return pull.Gone, err
	case job == nil || job.UID != owner.UID:
		o.gone.Set(owner.UID, true)
		return pull.Gone, nil
	case job.DeletionTimestamp != nil:
		return pull.Gone, nil
	case job.Status.CompletionTime != nil:
		return pull.Done, nil
	default:
		return pull.Running, nil
	}
}
