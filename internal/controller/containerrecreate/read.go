package containerrecreate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Request *v1beta1.ContainerRecreateRequest
	// Pod is the Pod of the name that the request gives; nil when there is none. It need not be the one that the request was made for.
	Pod *corev1.Pod
	Now time.Time
}

// read makes every read of a pass. Before a Pod counts as gone or replaced, it is read live: caches of several kinds are not of the same
// moment, and a request that has ended never goes on.
func read(ctx context.Context, r loop.Reads, request *v1beta1.ContainerRecreateRequest) (Snapshot, error) {
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}
	p, err := observe.Find(ctx, r, key, &corev1.Pod{})
	isMissing := p == nil || string(p.UID) != request.Labels[keys.RecreatePodUID]
	if err == nil && isMissing && !recreate.IsCompleted(request) && request.DeletionTimestamp == nil {
		p, err = observe.Find(ctx, r.Live, key, &corev1.Pod{})
	}
	return Snapshot{Request: request, Pod: p, Now: r.Now}, err
}
