package containerrecreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventSource is the component that the controller's events come from.
const EventSource = "containerrecreaterequest-controller"

// byPodUID is the index of requests by the UID of their Pod.
const byPodUID = "kruise.recreatePodUID"

// Config is what the controller works with.
type Config = loop.Config[loop.None]

// Add adds the controller to a manager.
func Add(mgr manager.Manager, c Config) error {
	if err := AddIndex(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "containerrecreaterequest", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.ContainerRecreateRequest{}, loop.OwnerEvents[*v1beta1.ContainerRecreateRequest](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(requests{mgr.GetCache()}.of)),
	}}.AddTo(mgr)
}

// AddIndex adds the index by which the requests for a Pod are found.
func AddIndex(ctx context.Context, to client.FieldIndexer) error {
	err := to.IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, byPodUID, func(object client.Object) []string {
		return []string{object.GetLabels()[keys.RecreatePodUID]}
	})
	if err != nil {
		return fmt.Errorf("indexing requests by Pod: %w", err)
	}
	return nil
}

// Loop is the reconcile of ContainerRecreateRequests.
type Loop = loop.Loop[*v1beta1.ContainerRecreateRequest, Snapshot]

// NewLoop returns the reconcile of ContainerRecreateRequests.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	return &Loop{
		New:   func() *v1beta1.ContainerRecreateRequest { return &v1beta1.ContainerRecreateRequest{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, request *v1beta1.ContainerRecreateRequest) (Snapshot, error) {
			v, err := Observe(ctx, r, c.Live, request)
			v.Now = c.Now()
			return v, err
		},
		Plan: Plan,
		// The daemon writes the status, too: it is planned with the rest, on the condition that it is what was looked at.
		Report:   func(v Snapshot, _ plan.Plan, _ apply.Outcome) *v1beta1.ContainerRecreateRequest { return v.Request },
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}
}

// requests finds the requests that a Pod concerns, in a cache.
type requests struct{ client.Reader }

func (r requests) of(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	p := after
	if p == nil {
		p = before
	}
	var list v1beta1.ContainerRecreateRequestList
	if err := r.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingFields{byPodUID: string(p.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing requests: %w", err)
	}
	var out []types.NamespacedName
	for i := range list.Items {
		out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return out, nil
}
