package nodeimage

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// observer makes the reads of a pass over a NodeImage.
type observer struct {
	Config
	graves graves
}

// observe makes every read of a pass over a NodeImage. What a cache lacks is looked for live before it counts as gone: caches of several kinds are
// not of the same moment, least of all those of a manager that has just taken over, and what is taken off a NodeImage ends pulls.
func (o *observer) observe(ctx context.Context, r observe.Reader, image *v1beta1.NodeImage) (Snapshot, error) {
	s := Snapshot{Image: image, Owners: map[types.UID]pull.OwnerState{}, Lost: map[types.NamespacedName]bool{}, Now: o.Now()}
	var err error
	if s.Node, err = o.node(ctx, r, image); err != nil {
		return Snapshot{}, err
	}
	for _, of := range image.Spec.Images {
		if err := o.readSecrets(ctx, r, of.PullSecrets, s.Lost); err != nil {
			return Snapshot{}, err
		}
		for i := range of.Tags {
			for _, owner := range of.Tags[i].OwnerReferences {
				if _, known := s.Owners[owner.UID]; known {
					continue
				}
				if s.Owners[owner.UID], err = o.fate(ctx, r, owner); err != nil {
					return Snapshot{}, err
				}
			}
		}
	}
	return s, nil
}

// node returns the node of a NodeImage; nil when it is gone or about to be.
func (o *observer) node(ctx context.Context, r observe.Reader, image *v1beta1.NodeImage) (*corev1.Node, error) {
	node := &corev1.Node{}
	key := client.ObjectKey{Name: image.Name}
	err := r.Get(ctx, key, node)
	if _, fake := image.Labels[keys.FakeNodeImage]; apierrors.IsNotFound(err) && !fake {
		err = o.Live.Get(ctx, key, node)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", image.Name, err)
	case node.DeletionTimestamp != nil:
		return nil, nil
	}
	return node, nil
}

// readSecrets finds out which Secrets are gone, as far as the manager may know.
func (o *observer) readSecrets(ctx context.Context, r observe.Reader, secrets []v1beta1.ReferenceObject, lost map[types.NamespacedName]bool) error {
	for _, secret := range secrets {
		if !o.Jobs || secret.Mode == v1beta1.ReferenceBatch || secret.Namespace != o.ConfigNamespace {
			continue
		}
		key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
		err := r.Get(ctx, key, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			err = o.Live.Get(ctx, key, &corev1.Secret{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading Secret %s: %w", key, err)
		}
		lost[key] = err != nil
	}
	return nil
}

// fate finds out what has become of an owner. Nothing is known of those that are not looked after.
func (o *observer) fate(ctx context.Context, r observe.Reader, owner corev1.ObjectReference) (pull.OwnerState, error) {
	if owner.Kind != "ImagePullJob" || !o.Jobs || o.Namespace != "" && owner.Namespace != o.Namespace {
		return pull.Done, nil
	}
	if o.graves.has(owner.UID) {
		return pull.Gone, nil
	}
	var job v1beta1.ImagePullJob
	key := client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}
	err := r.Get(ctx, key, &job)
	if apierrors.IsNotFound(err) || err == nil && job.UID != owner.UID {
		job = v1beta1.ImagePullJob{}
		err = o.Live.Get(ctx, key, &job)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && job.UID != owner.UID:
		o.graves.add(owner.UID, o.Now())
		return pull.Gone, nil
	case err != nil:
		return pull.Gone, fmt.Errorf("reading ImagePullJob %s: %w", key, err)
	case job.DeletionTimestamp != nil:
		return pull.Gone, nil
	case job.Status.CompletionTime != nil:
		return pull.Done, nil
	default:
		return pull.Running, nil
	}
}

// graves are the jobs that are known to be gone: a job may have asked thousands of nodes, and one look is enough.
type graves struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// buried is for how long it is remembered that a job is gone.
const buried = 10 * time.Minute

func (g *graves) has(job types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, gone := g.since[job]
	return gone
}

func (g *graves) add(job types.UID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since == nil {
		g.since = map[types.UID]time.Time{}
	}
	for other, since := range g.since {
		if now.Sub(since) >= buried {
			delete(g.since, other)
		}
	}
	g.since[job] = now
}
