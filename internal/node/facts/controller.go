package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/retry"
	"github.com/seed-69ecc383/kruise/internal/node/work"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

const (
	workers = 5
	// awayWait is when a runtime that is away is asked again.
	awayWait = 5 * time.Second
	// maxTries is how often a container is asked what it runs with before that is given up, and retryWait the pause between: a runtime that is busy
	// for a moment has nothing to do with it.
	maxTries  = 5
	retryWait = 3 * time.Second
	// A daemon that comes to a full node tells of its Pods slowly: nobody waits for all of them.
	tellsPerSecond, tellsAtOnce = 5, 20
)

// Config is what the worker is made of.
type Config struct {
	Runtimes *cri.Set
	Events   record.EventRecorder
	Now      func() time.Time
}

// Scope returns what the worker watches: the Pods of its node.
func Scope(node string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", node)},
	}
}

// Add adds the worker.
func Add(mgr ctrlmanager.Manager, c Config) error {
	life, err := work.Life(mgr) // a container may take longer to stop than a look at its Pod
	if err != nil {
		return err
	}
	w := &worker{
		Config: c, client: mgr.GetClient(), limiter: rate.NewLimiter(tellsPerSecond, tellsAtOnce),
		memory: newMemory(), restarts: newRestarts(life, c),
	}
	return ctrl.NewControllerManagedBy(mgr).Named("facts").For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retry.Limiter()}).Complete(w)
}

type worker struct {
	Config
	client   client.Client
	limiter  *rate.Limiter
	memory   *memory
	restarts *restarts
}

// Reconcile tells the facts of one Pod, and restarts those of its containers that have to.
func (w *worker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &corev1.Pod{}
	err := w.client.Get(ctx, request.NamespacedName, p)
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("reading Pod %s: %w", request, err)
	}
	if err != nil || p.DeletionTimestamp != nil || !IsTold(p) {
		w.memory.forget(request.NamespacedName)
		w.restarts.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	known, err := w.ask(ctx, p)
	if cri.IsAway(err) {
		return ctrl.Result{RequeueAfter: awayWait}, nil
	}
	if err != nil {
		log.FromContext(ctx).Info("What a container runs with is not known, asking again", "problem", err.Error())
		return ctrl.Result{RequeueAfter: retryWait}, nil
	}
	wait, err := w.tell(ctx, p, known)
	if err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	return ctrl.Result{RequeueAfter: w.restarts.bring(ctx, p, ToRestart(p, known))}, nil
}

// ask returns the facts of the Pod's containers, and asks the runtime for those that are not known.
func (w *worker) ask(ctx context.Context, p *corev1.Pod) (map[string]Fact, error) {
	all := containers(p)
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].status.ContainerID
	}
	name := client.ObjectKeyFromObject(p)
	known := w.memory.recall(name, ids)
	var failed []error
	for _, c := range all {
		id := c.status.ContainerID
		if _, ok := known[id]; ok {
			continue
		}
		fact, err := w.askFor(ctx, p, c)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if fact != nil {
			known[id] = *fact
			w.memory.keep(name, id, *fact)
		}
	}
	return known, errors.Join(failed...)
}

// askFor returns the fact of one container; nil when the runtime knows it no longer, or what it says could not be read too often.
func (w *worker) askFor(ctx context.Context, p *corev1.Pod, c container) (*Fact, error) {
	runtime, id, err := w.Runtimes.Of(c.status.ContainerID)
	if err != nil {
		return nil, err
	}
	started, err := runtime.Started(ctx, id)
	if cri.IsAway(err) {
		return nil, err
	}
	missing := err == nil && started != nil && started.Environment == nil && takesMetadata(p, c)
	if err != nil || missing {
		if missing {
			err = fmt.Errorf("container runtime %s does not tell the environment of container %s", runtime.Name, id)
		}
		if w.memory.fail(client.ObjectKeyFromObject(p), c.status.ContainerID) < maxTries {
			return nil, err
		}
		w.Events.Eventf(p, corev1.EventTypeWarning, "FailedContainerMeta", "What container %s runs with can't be told: %v", c.spec.Name, err)
		if started == nil {
			return &Fact{}, nil
		}
	}
	if started == nil {
		return nil, nil
	}
	fact := &Fact{Hash: started.Hash}
	if started.Environment != nil {
		fact.Environment = map[string]string{}
		for _, asked := range inplace.Environment(p, c.spec) { // no more is kept: the rest may be secret
			if value, ok := started.Environment[asked.Name]; ok {
				fact.Environment[asked.Name] = value
			}
		}
	}
	return fact, nil
}

// tell writes the facts on the Pod if it does not have them; it returns how long that has to wait.
func (w *worker) tell(ctx context.Context, p *corev1.Pod, known map[string]Fact) (wait time.Duration, err error) {
	set := Describe(p, known)
	if len(set.Containers) == 0 {
		return 0, nil
	}
	told, err := json.Marshal(set)
	if err != nil {
		return 0, fmt.Errorf("encoding the facts of Pod %s: %w", p.Name, err)
	}
	if p.Annotations[keys.RuntimeContainersMeta] == string(told) {
		return 0, nil
	}
	if reservation := w.limiter.Reserve(); reservation.Delay() > 0 {
		wait := reservation.Delay()
		reservation.Cancel()
		return wait, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "annotations": map[string]string{keys.RuntimeContainersMeta: string(told)},
	}})
	if err != nil {
		return 0, fmt.Errorf("encoding the facts of Pod %s: %w", p.Name, err)
	}
	err = w.client.Status().Patch(ctx, p.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another Pod of that name
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("telling the facts of Pod %s: %w", p.Name, err)
	}
	log.FromContext(ctx).V(1).Info("Told what containers run with", "containers", len(set.Containers))
	return 0, nil
}
