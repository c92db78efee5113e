package containerrecreate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// byPodUID is the index of requests by the UID of their Pod.
const byPodUID = "kruise.recreatePodUID"

// Kind is the controller of ContainerRecreateRequests. The daemon writes their status as well, so the plan writes it, over the version that
// was read.
func Kind() loop.Kind[*v1beta1.ContainerRecreateRequest, Snapshot, v1beta1.ContainerRecreateRequestStatus] {
	return loop.Kind[*v1beta1.ContainerRecreateRequest, Snapshot, v1beta1.ContainerRecreateRequestStatus]{
		Name:    "containerrecreaterequest",
		Indexes: addIndex,
		Watches: func(cached observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Affected(&corev1.Pod{}, requests{cached}.ofPod)}
		},
		Read: read,
		Plan: Plan,
	}
}

func addIndex(ctx context.Context, to client.FieldIndexer) error {
	err := to.IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, byPodUID, func(object client.Object) []string {
		return []string{object.GetLabels()[keys.RecreatePodUID]}
	})
	if err != nil {
		return fmt.Errorf("indexing requests by Pod: %w", err)
	}
	return nil
}

// requests finds the requests that a change concerns.
type requests struct{ observe.Reader }

func (r requests) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	p := cmp.Or(after, before)
	var list v1beta1.ContainerRecreateRequestList
	all, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(p.Namespace), client.MatchingFields{byPodUID: string(p.UID)})
	return observe.Keys(all, func(*v1beta1.ContainerRecreateRequest) bool { return true }), err
}

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
