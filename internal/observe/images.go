package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// NodeImages returns all NodeImages.
func (r Reader) NodeImages(ctx context.Context) ([]*v1beta1.NodeImage, error) {
	var list v1beta1.NodeImageList
	return List(ctx, r, &list, &list.Items)
}

// SelectedPods returns the Pods of a namespace that the selector matches. A cache may hold no more of them than what identifies them and where
// they are.
func (r Reader) SelectedPods(ctx context.Context, namespace string, selector labels.Selector) ([]*corev1.Pod, error) {
	var list corev1.PodList
	return List(ctx, r, &list, &list.Items, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
}

// ImagePullJobs returns the jobs that the owner controls.
func (r Reader) ImagePullJobs(ctx context.Context, namespace string, owner types.UID) ([]*v1beta1.ImagePullJob, error) {
	var list v1beta1.ImagePullJobList
	jobs, err := List(ctx, r, &list, &list.Items, r.controlledBy(string(owner), namespace)...)
	return slices.DeleteFunc(jobs, func(job *v1beta1.ImagePullJob) bool { return !isControlledBy(job, owner) }), err
}

// Secrets returns the Secrets of a namespace.
func (r Reader) Secrets(ctx context.Context, namespace string) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	return List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
}

// Sources reads Secrets by name, live: the manager may neither list nor watch them. What was read stands for a while.
type Sources struct {
	live client.Reader
	now  func() time.Time
	mu   sync.Mutex
	read map[types.NamespacedName]source
}

type source struct {
	secret *corev1.Secret
	err    error
	at     time.Time
}

// SourceStands is for how long a Secret is not read again.
const SourceStands = 5 * time.Second

// NewSources returns Sources that have read nothing yet.
func NewSources(live client.Reader, now func() time.Time) *Sources {
	return &Sources{live: live, now: now, read: map[types.NamespacedName]source{}}
}

// Get returns a Secret, or what the API server said to the last try to read it. The Secret must not be changed.
func (s *Sources) Get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	now := s.now()
	s.mu.Lock()
	for old, known := range s.read {
		if now.Sub(known.at) >= SourceStands {
			delete(s.read, old)
		}
	}
	known, ok := s.read[key]
	s.mu.Unlock()
	if ok {
		return known.secret, known.err
	}
	secret := &corev1.Secret{}
	err := s.live.Get(ctx, key, secret)
	if err != nil {
		secret = nil
	}
	s.mu.Lock()
	s.read[key] = source{secret: secret, err: err, at: now}
	s.mu.Unlock()
	return secret, err
}
