// Package restart carries out the ContainerRecreateRequests for the Pods of a node: it runs the hooks of the containers and stops them, one
// after the other, and follows how the kubelet restarts them.
//
// Its promise: what package recreate decides is stored before it is done, so that a daemon that is killed at any point goes on where it
// was. Requests of one Pod are carried out one after the other, those of different Pods at the same time.
package restart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// byPod is the index of requests by the name of their Pod.
const byPod = "kruise.podName"

const (
	// concurrency is the number of Pods reconciled at the same time. A reconcile takes a request to the runtime and a write; hooks and
	// stops run beside it.
	concurrency = 8
	// conflictDelay is when to reconcile again after the cache was too old.
	conflictDelay = 200 * time.Millisecond
	// pollInterval is how often the runtime is asked for a container that is to come back; most often the Pod's status shows it first.
	pollInterval = time.Second
	// awayInterval is how often a runtime that is away is asked again.
	awayInterval = 2 * time.Second
)

// Scope returns what the worker watches: the Pods of its node, and the requests for them that have not ended.
func Scope(node string) worker.Scope {
	active := labels.Set{keys.RecreateNodeName: node, keys.RecreateActive: "true"}
	if len(validation.IsValidLabelValue(node)) > 0 {
		// Admission refuses requests for a node with such a name. No request has this label either.
		active = labels.Set{keys.RecreateActive: "none"}
	}
	scope := worker.PodsOf(node)
	scope[&v1beta1.ContainerRecreateRequest{}] = cache.ByObject{Label: labels.SelectorFromSet(active)}
	return scope
}

// Add adds the worker. Hooks and stops run until the context ends.
func Add(ctx context.Context, mgr ctrlmanager.Manager, c worker.Config) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, byPod, func(object client.Object) []string {
		return []string{object.(*v1beta1.ContainerRecreateRequest).Spec.PodName}
	})
	if err != nil {
		return fmt.Errorf("indexing requests by Pod: %w", err)
	}
	trigger := &worker.Trigger{}
	r := &reconciler{Config: c, client: mgr.GetClient(), tasks: newTasks(ctx, func(pod types.NamespacedName) { trigger.After(0, pod) })}
	toPod := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		r := object.(*v1beta1.ContainerRecreateRequest)
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.PodName}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("restart").For(&corev1.Pod{}).
		Watches(&v1beta1.ContainerRecreateRequest{}, toPod).WatchesRawSource(trigger).WithOptions(worker.Options(concurrency)).Complete(r)
}

type reconciler struct {
	worker.Config
	client  client.Client
	tasks   *tasks
	written written
}

// Reconcile carries out the next step of the request for a Pod whose turn it is.
func (w *reconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	current, err := w.turn(ctx, key.NamespacedName)
	if err == nil && current == nil {
		w.tasks.drop(key.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err == nil && !w.tasks.busy(key.NamespacedName) {
		var wait time.Duration
		if wait, err = w.carryOut(ctx, current); err == nil {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil // by then the cache has the newer version
	case cri.IsAway(err):
		log.FromContext(ctx).Info("The container runtime does not answer", "problem", err.Error())
		return ctrl.Result{RequeueAfter: awayInterval}, nil
	}
	return ctrl.Result{}, err
}

// turn returns the request whose turn it is, nil if there is none, and sets those behind it to Pending.
func (w *reconciler) turn(ctx context.Context, pod types.NamespacedName) (*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	if err := w.client.List(ctx, &list, client.InNamespace(pod.Namespace), client.MatchingFields{byPod: pod.Name}); err != nil {
		return nil, fmt.Errorf("listing requests: %w", err)
	}
	if len(list.Items) == 0 {
		w.written.drop(pod)
	}
	var all []*v1beta1.ContainerRecreateRequest
	for i := range list.Items {
		all = append(all, w.written.newest(pod, &list.Items[i]))
	}
	current, waiting := recreate.Pick(all)
	for _, r := range waiting {
		if r.Status.Phase != "" {
			continue
		}
		after := r.DeepCopy()
		after.Status.Phase = v1beta1.ContainerRecreateRequestPending
		if err := w.store(ctx, r, after); err != nil {
			return nil, err
		}
	}
	return current, nil
}

// carryOut carries out the next step of a request, and returns when to reconcile again without an event; zero for never.
func (w *reconciler) carryOut(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (time.Duration, error) {
	after := request.DeepCopy()
	if request.Status.Phase != v1beta1.ContainerRecreateRequestRecreating {
		after.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
		if err := w.store(ctx, request, after); err != nil {
			return 0, err
		}
		request, after = after, after.DeepCopy()
	}
	if left, begun := recreate.GraceLeft(request, w.Now()); !begun || left > 0 {
		return left, nil
	}
	p, err := w.pod(ctx, request)
	if err != nil || p == nil {
		return 0, err // the manager ends the request of a Pod that is deleted
	}
	runtime, err := w.runtime(request)
	if cri.IsAway(err) {
		return 0, err
	}
	if err != nil {
		after.Status.ContainerStatusSnapshot = recreate.Snapshot(request, p)
		recreate.Complete(&after.Status, "failed to find runtime service: "+err.Error(), w.Now())
		return 0, w.store(ctx, request, after)
	}
	observed := recreate.Observed{Request: after, Pod: p, Now: w.Now()}
	if observed.Containers, err = newest(ctx, runtime, request); err != nil {
		return 0, err
	}
	key := client.ObjectKeyFromObject(p)
	applied := w.tasks.apply(key, &after.Status, w.Now())
	step := recreate.Next(observed)
	after.Status.ContainerRecreateStates = step.States
	if step.Complete {
		after.Status.ContainerStatusSnapshot = recreate.Snapshot(request, p)
		recreate.Complete(&after.Status, "", w.Now())
	}
	if err := w.store(ctx, request, after); err != nil {
		return 0, err
	}
	if applied {
		w.tasks.setStored(key)
	}
	if step.Kill != nil {
		w.kill(ctx, target{Kill: *step.Kill, request: after, pod: p, runtime: runtime, resumed: isKilled(request, *step.Kill)})
		return 0, nil
	}
	if step.Complete {
		return 0, nil
	}
	if step.Wait > 0 {
		return min(step.Wait, pollInterval), nil
	}
	return pollInterval, nil
}

// pod returns the Pod that a request was made for; nil when it is gone or being deleted.
func (w *reconciler) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, p)
	if apierrors.IsNotFound(err) || err == nil && (p.DeletionTimestamp != nil || string(p.UID) != request.Labels[keys.RecreatePodUID]) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", request.Spec.PodName, err)
	}
	return p, nil
}

// isKilled reports whether the stored status says already that the container is being stopped.
func isKilled(request *v1beta1.ContainerRecreateRequest, kill recreate.Kill) bool {
	return slices.ContainsFunc(request.Status.ContainerRecreateStates, func(s recreate.State) bool {
		return s.Name == kill.Name && s.IsKilled && s.ContainerID == kill.ID
	})
}

// store writes the status if it differs, on the condition that the object has not changed.
func (w *reconciler) store(ctx context.Context, before, after *v1beta1.ContainerRecreateRequest) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := w.client.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("writing the status of %s: %w", before.Name, err)
	}
	w.written.add(after.DeepCopy())
	return nil
}

// runtime returns the runtime of the containers of a request.
func (w *reconciler) runtime(request *v1beta1.ContainerRecreateRequest) (*cri.Runtime, error) {
	var found *cri.Runtime
	for _, c := range request.Spec.Containers {
		if c.StatusContext == nil {
			continue
		}
		r, _, err := w.Runtimes.Of(c.StatusContext.ContainerID)
		if err != nil {
			return nil, err
		}
		if found != nil && r != found {
			return nil, errors.New("the containers are of different runtimes")
		}
		found = r
	}
	if found == nil {
		return w.Runtimes.Primary()
	}
	return found, nil
}

// newest asks the runtime for the newest container of each name in a request.
func newest(ctx context.Context, r *cri.Runtime, request *v1beta1.ContainerRecreateRequest) (map[string]recreate.Container, error) {
	all, err := r.Containers(ctx, request.Labels[keys.RecreatePodUID])
	if err != nil {
		return nil, err
	}
	out := map[string]recreate.Container{}
	for _, c := range request.Spec.Containers {
		found := all[c.Name]
		if found == nil {
			continue
		}
		now := recreate.Container{ID: r.Name + "://" + found.Id, RestartCount: int32(found.Metadata.GetAttempt())}
		switch found.State {
		case runtimeapi.ContainerState_CONTAINER_RUNNING:
			now.State = recreate.Running
		case runtimeapi.ContainerState_CONTAINER_EXITED:
			now.State = recreate.Exited
		default:
			now.State = recreate.Created
		}
		status, err := r.ContainerStatus(ctx, found.Id)
		if err != nil {
			return nil, err
		}
		if status == nil {
			continue // removed meanwhile
		}
		if status.StartedAt > 0 {
			now.StartedAt = time.Unix(0, status.StartedAt)
		}
		now.ExitCode = status.ExitCode
		out[c.Name] = now
	}
	return out, nil
}
