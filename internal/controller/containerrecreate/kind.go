package containerrecreate

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
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
