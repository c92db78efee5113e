// Package probe runs the probes that the NodePodProbe of its node lists, each with its own period, and reports the results there.
//
// Its promise: a result is reported within a second or two when it changes, and else every ten minutes. A probe that is removed does not
// run again, and one that hangs delays no other.
package probe

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
)

const (
	// batchDelay is how long a report waits for other results that come at the same time.
	batchDelay = 200 * time.Millisecond
	// A node writes at most one report a second, but for a few in a row.
	reportInterval = time.Second
	reportBurst    = 3
)

// Scope returns what the worker watches: the NodePodProbe of its node.
func Scope(node string) worker.Scope { return worker.Named(&v1alpha1.NodePodProbe{}, node) }

// Add adds the worker. Probes run until the context ends.
func Add(ctx context.Context, mgr ctrlmanager.Manager, c worker.Config) error {
	trigger := &worker.Trigger{}
	changed := func() { trigger.After(batchDelay, client.ObjectKey{Name: c.Node}) }
	r := &reconciler{
		Config: c, client: mgr.GetClient(), limiter: rate.NewLimiter(rate.Every(reportInterval), reportBurst),
		probes: newProbes(ctx, func() (runtime, error) { return c.Runtimes.Primary() }, changed, c.Now),
	}
	return ctrl.NewControllerManagedBy(mgr).Named("probe").For(&v1alpha1.NodePodProbe{}).WatchesRawSource(trigger).
		WithOptions(worker.Options(1)).Complete(r)
}

type reconciler struct {
	worker.Config
	client  client.Client
	limiter *rate.Limiter
	probes  *probes
	// written is what the last write returned: the cache may be older.
	written *v1alpha1.NodePodProbe
}

// Reconcile starts and ends probes as the NodePodProbe says, and reports.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	n := &v1alpha1.NodePodProbe{}
	err := r.client.Get(ctx, request.NamespacedName, n)
	if apierrors.IsNotFound(err) {
		r.written = nil
		r.probes.follow(&v1alpha1.NodePodProbe{})
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading NodePodProbe %s: %w", request.Name, err)
	}
	if r.written != nil && worker.IsOlder(n, r.written) {
		n.Status, n.ResourceVersion = r.written.Status, r.written.ResourceVersion
	}
	r.probes.follow(n)
	after := n.DeepCopy()
	after.Status = report(n, r.probes.results())
	if equality.Semantic.DeepEqual(n.Status, after.Status) {
		return ctrl.Result{}, nil
	}
	if wait := worker.Delay(r.limiter); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	reported := after.Status
	// Unconditional: the daemon alone writes the status, and all of it.
	if err := r.client.Status().Patch(ctx, after, client.MergeFrom(n)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reporting on NodePodProbe %s: %w", n.Name, err))
	}
	r.written = after
	r.emit(n.Status, reported)
	return ctrl.Result{}, nil
}

// emit emits an event for each result that has changed.
func (r *reconciler) emit(before, after v1alpha1.NodePodProbeStatus) {
	known := statesByKey(before)
	for _, p := range after.PodProbeStatuses {
		for _, state := range p.ProbeStates {
			old := known[key{p.UID, state.Name}]
			if old.State == state.State && old.Message == state.Message {
				continue
			}
			pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}
			switch state.State {
			case v1alpha1.ProbeSucceeded:
				r.Events.Event(pod, corev1.EventTypeNormal, "KruiseProbeSucceeded", state.Message)
			case v1alpha1.ProbeFailed:
				r.Events.Event(pod, corev1.EventTypeNormal, "KruiseProbeFailed", state.Message)
			}
		}
	}
}

// key identifies a probe by the UID of its Pod and its name.
type key struct{ pod, name string }

func statesByKey(s v1alpha1.NodePodProbeStatus) map[key]v1alpha1.ContainerProbeState {
	out := map[key]v1alpha1.ContainerProbeState{}
	for _, p := range s.PodProbeStatuses {
		for _, state := range p.ProbeStates {
			out[key{p.UID, state.Name}] = state
		}
	}
	return out
}

// report returns the status in the order of the spec: of each probe the newest result, or else the one in the status.
func report(n *v1alpha1.NodePodProbe, newest map[key]v1alpha1.ContainerProbeState) v1alpha1.NodePodProbeStatus {
	before := statesByKey(n.Status)
	var out v1alpha1.NodePodProbeStatus
	for _, p := range n.Spec.PodProbes {
		of := v1alpha1.PodProbeStatus{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
		for _, probe := range p.Probes {
			k := key{p.UID, probe.Name}
			state, ok := newest[k]
			if !ok {
				state, ok = before[k]
			}
			if ok {
				of.ProbeStates = append(of.ProbeStates, state)
			}
		}
		if len(of.ProbeStates) > 0 {
			out.PodProbeStatuses = append(out.PodProbeStatuses, of)
		}
	}
	return out
}
