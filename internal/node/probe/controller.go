package probe

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/retry"
	"github.com/seed-69ecc383/kruise/internal/node/work"
)

const (
	// gather is how long a report waits for other results that come at the same time.
	gather = 200 * time.Millisecond
	// A node writes at most one report a second, but for a few in a row.
	reportInterval = time.Second
	reportBurst    = 3
)

// Config is what the worker is made of.
type Config struct {
	// Node is the name of the node, and so of its NodePodProbe.
	Node     string
	Runtimes *cri.Set
	Events   record.EventRecorder
	Now      func() time.Time
}

// Scope returns what the worker watches: the NodePodProbe of its node.
func Scope(node string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&v1alpha1.NodePodProbe{}: {Field: fields.OneTermEqualSelector("metadata.name", node)},
	}
}

// Add adds the worker.
func Add(mgr ctrlmanager.Manager, c Config) error {
	life, err := work.Life(mgr) // questions outlive the look at the NodePodProbe that began them
	if err != nil {
		return err
	}
	bell := work.NewBell()
	changed := func() { bell.Ring(&v1alpha1.NodePodProbe{}) }
	w := &worker{
		Config: c, client: mgr.GetClient(), limiter: rate.NewLimiter(rate.Every(reportInterval), reportBurst),
		tasks: newTasks(life, func() (runtime, error) { return c.Runtimes.Primary() }, changed, c.Now),
	}
	toOurs := handler.Funcs{GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: c.Node}}, gather)
	}}
	return ctrl.NewControllerManagedBy(mgr).Named("probe").For(&v1alpha1.NodePodProbe{}).WatchesRawSource(bell.Source(toOurs)).
		WithOptions(controller.Options{RateLimiter: retry.Limiter()}).Complete(w)
}

// worker has what is asked on the node asked, and reports.
type worker struct {
	Config
	client  client.Client
	limiter *rate.Limiter
	tasks   *tasks

	// written is what the last write left: the cache may be older.
	written *v1alpha1.NodePodProbe
}

// Reconcile looks at the NodePodProbe, starts and ends what that asks for, and reports.
func (w *worker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	probes := &v1alpha1.NodePodProbe{}
	err := w.client.Get(ctx, request.NamespacedName, probes)
	if apierrors.IsNotFound(err) {
		w.written = nil
		w.tasks.follow(&v1alpha1.NodePodProbe{})
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading NodePodProbe %s: %w", request.Name, err)
	}
	if w.written != nil && w.written.UID == probes.UID && isOlder(probes, w.written) {
		probes.Status, probes.ResourceVersion = w.written.Status, w.written.ResourceVersion
	}
	w.tasks.follow(probes)
	after := probes.DeepCopy()
	after.Status = report(probes, w.tasks.results())
	if equality.Semantic.DeepEqual(probes.Status, after.Status) {
		return ctrl.Result{}, nil
	}
	if reservation := w.limiter.ReserveN(time.Now(), 1); reservation.Delay() > 0 {
		wait := reservation.Delay()
		reservation.Cancel()
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	told := after.Status
	// No condition on the version: the daemon alone writes the status, and all of it.
	if err := w.client.Status().Patch(ctx, after, client.MergeFrom(probes)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reporting on NodePodProbe %s: %w", probes.Name, err))
	}
	w.written = after
	w.tell(probes.Status, told)
	return ctrl.Result{}, nil
}

func isOlder(a, b *v1alpha1.NodePodProbe) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// tell emits an event for each result that has changed.
func (w *worker) tell(before, after v1alpha1.NodePodProbeStatus) {
	known := indexed(before)
	for _, p := range after.PodProbeStatuses {
		for _, state := range p.ProbeStates {
			old := known[key{p.UID, state.Name}]
			if old.State == state.State && old.Message == state.Message {
				continue
			}
			pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: uid(p.UID)}
			switch state.State {
			case v1alpha1.ProbeSucceeded:
				w.Events.Event(pod, corev1.EventTypeNormal, "KruiseProbeSucceeded", state.Message)
			case v1alpha1.ProbeFailed:
				w.Events.Event(pod, corev1.EventTypeNormal, "KruiseProbeFailed", state.Message)
			}
		}
	}
}
