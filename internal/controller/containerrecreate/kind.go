package containerrecreate

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
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
		Read:    read,
		Plan:    Plan,
		Deleted: gone,
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

// ofPod finds those that were made for a Pod, and those that keep it out of service, which need not be there any more.
func (r requests) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	p := cmp.Or(after, before)
	var list v1beta1.ContainerRecreateRequestList
	all, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(p.Namespace), client.MatchingFields{byPodUID: string(p.UID)})
	found := observe.Keys(all, func(*v1beta1.ContainerRecreateRequest) bool { return true })
	for _, held := range lifecycle.HeldFor(p, userAgent) {
		if name, ok := strings.CutPrefix(held, p.Namespace+"/"); ok {
			found = append(found, types.NamespacedName{Namespace: p.Namespace, Name: name})
		}
	}
	return found, err
}

// gone brings a Pod back into service that a request keeps out of it which is gone: a manager that was stopped in between has taken it
// out after another one had seen the request go.
func gone(ctx context.Context, r loop.Reads, key types.NamespacedName) (plan.Object, plan.Plan, error) {
	b := plan.For("ContainerRecreateRequest " + key.String() + " is gone")
	if request, err := observe.Find(ctx, r.Live, key, &v1beta1.ContainerRecreateRequest{}); request != nil || err != nil {
		return nil, b.Plan(), err
	}
	var list corev1.PodList
	pods, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(key.Namespace))
	for _, p := range pods {
		v := Snapshot{Request: &v1beta1.ContainerRecreateRequest{}, Pod: p, Now: r.Now}
		v.Request.Namespace, v.Request.Name = key.Namespace, key.Name
		if lifecycle.IsHeld(p, v.mark()) {
			b.Do(v.bringBack("the request is gone"))
			return p, b.Plan(), err
		}
	}
	return nil, b.Plan(), err
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
