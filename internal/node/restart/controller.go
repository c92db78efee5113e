package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/retry"
	"github.com/seed-69ecc383/kruise/internal/node/work"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// byPod is the index of requests by the name of their Pod.
const byPod = "kruise.podName"

const (
	// workers is the number of Pods looked at at the same time. Looking takes a question to the runtime and a write; hooks and stops take no worker.
	workers = 8
	// shortly is when to look again after the cache has turned out to be old.
	shortly = 200 * time.Millisecond
	// poll is how often a container that is to come back is looked for; most often the Pod's status tells of it first.
	poll = time.Second
	// away is when to ask a runtime again that does not answer.
	away = 2 * time.Second
)

// Config is what the worker is made of.
type Config struct {
	Runtimes *cri.Set
	Events   record.EventRecorder
	Now      func() time.Time
}

// Scope returns what the worker watches: the Pods of its node, and the requests for them that have not ended.
func Scope(node string) map[client.Object]cache.ByObject {
	ours := labels.Set{keys.RecreateNodeName: node, keys.RecreateActive: "true"}
	if len(validation.IsValidLabelValue(node)) > 0 {
		// Admission lets no request through for a node with such a name. No request has this label either.
		ours = labels.Set{keys.RecreateActive: "none"}
	}
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:                       {Field: fields.OneTermEqualSelector("spec.nodeName", node)},
		&v1beta1.ContainerRecreateRequest{}: {Label: labels.SelectorFromSet(ours)},
	}
}

// Add adds the worker.
func Add(mgr ctrlmanager.Manager, c Config) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1beta1.ContainerRecreateRequest{}, byPod, func(object client.Object) []string {
		return []string{object.(*v1beta1.ContainerRecreateRequest).Spec.PodName}
	})
	if err != nil {
		return fmt.Errorf("indexing requests by Pod: %w", err)
	}
	ended := make(chan event.GenericEvent, 64)
	life, err := work.Life(mgr) // jobs outlive the look at the request that began them
	if err != nil {
		return err
	}
	w := &worker{Config: c, client: mgr.GetClient(), jobs: newJobs(life, func(pod types.NamespacedName) {
		p := &corev1.Pod{}
		p.Namespace, p.Name = pod.Namespace, pod.Name
		select {
		case ended <- event.GenericEvent{Object: p}:
		case <-life.Done():
		}
	})}
	toPod := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		r := object.(*v1beta1.ContainerRecreateRequest)
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.PodName}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("restart").For(&corev1.Pod{}).
		Watches(&v1beta1.ContainerRecreateRequest{}, toPod).
		WatchesRawSource(source.Channel(ended, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retry.Limiter()}).Complete(w)
}

// worker carries out the requests for one Pod after the other.
type worker struct {
	Config
	client client.Client
	jobs   *jobs
}

// Reconcile looks at the requests for a Pod, and takes the one whose turn it is a step further.
func (w *worker) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	acting, err := w.turn(ctx, key.NamespacedName)
	if err == nil && acting == nil {
		w.jobs.drop(key.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err == nil && !w.jobs.busy(key.NamespacedName) {
		var wait time.Duration
		if wait, err = w.carryOut(ctx, acting); err == nil {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: shortly}, nil // the cache will show what has become of it
	case cri.IsAway(err):
		log.FromContext(ctx).Info("The container runtime does not answer", "problem", err.Error())
		return ctrl.Result{RequeueAfter: away}, nil
	}
	return ctrl.Result{}, err
}

// turn returns the request whose turn it is, nil if there is none, and has those behind it say that they wait.
func (w *worker) turn(ctx context.Context, pod types.NamespacedName) (*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	if err := w.client.List(ctx, &list, client.InNamespace(pod.Namespace), client.MatchingFields{byPod: pod.Name}); err != nil {
		return nil, fmt.Errorf("listing requests: %w", err)
	}
	var all []*v1beta1.ContainerRecreateRequest
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	acting, waiting := recreate.Pick(all)
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
	return acting, nil
}

// carryOut takes a request a step further, and returns when to look at it again if nothing happens; zero for never.
func (w *worker) carryOut(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (time.Duration, error) {
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
		return 0, err // the manager ends the request of a Pod that goes
	}
	runtime, err := w.runtime(request)
	if cri.IsAway(err) {
		return 0, err
	}
	if err != nil {
		recreate.Fail(&after.Status, "failed to find runtime service: "+err.Error(), w.Now())
		return 0, w.store(ctx, request, after)
	}
	sight := recreate.Observed{Request: after, Pod: p, Now: w.Now()}
	if sight.Containers, err = look(ctx, runtime, request); err != nil {
		return 0, err
	}
	key := client.ObjectKeyFromObject(p)
	applied := w.jobs.apply(key, &after.Status, w.Now())
	step := recreate.Next(sight)
	after.Status.ContainerRecreateStates = step.States
	if step.Complete {
		recreate.Complete(&after.Status, w.Now())
	}
	if err := w.store(ctx, request, after); err != nil {
		return 0, err
	}
	if applied {
		w.jobs.forget(key)
	}
	if step.Kill != nil {
		w.begin(ctx, target{Kill: *step.Kill, request: after, pod: p, runtime: runtime, resumed: isKilled(request, *step.Kill)})
		return 0, nil
	}
	if step.Complete {
		return 0, nil
	}
	if step.Wait > 0 {
		return min(step.Wait, poll), nil
	}
	return poll, nil
}

// pod returns the Pod that a request was made for; nil when it is gone or on its way out.
func (w *worker) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, p)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Pod %s: %w", request.Spec.PodName, err)
	case p.DeletionTimestamp != nil || string(p.UID) != request.Labels[keys.RecreatePodUID]:
		return nil, nil
	}
	return p, nil
}

// runtime returns the runtime of the containers of a request.
func (w *worker) runtime(request *v1beta1.ContainerRecreateRequest) (*cri.Runtime, error) {
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

// isKilled reports whether a request said already, before this step, that the container is being stopped.
func isKilled(request *v1beta1.ContainerRecreateRequest, kill recreate.Kill) bool {
	for _, s := range request.Status.ContainerRecreateStates {
		if s.Name == kill.Name && s.IsKilled && s.ContainerID == kill.ID {
			return true
		}
	}
	return false
}

// store writes the status, if it differs, on the condition that nobody else has written meanwhile.
func (w *worker) store(ctx context.Context, before, after *v1beta1.ContainerRecreateRequest) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := w.client.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("writing the status of %s: %w", before.Name, err)
	}
	return nil
}
