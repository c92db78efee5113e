// Package facts writes on every Pod of a workload of Kruise what its containers really run with: from which spec the kubelet started each,
// and with which labels and annotations in its environment. Updates in place wait for it.
//
// A container takes labels and annotations into its environment when it starts. While a Pod is being updated in place, a container that the
// update changes and that runs with others than the Pod has now is stopped, and the kubelet restarts it. At any other time it is left
// alone: a label that is changed by hand restarts nothing.
//
// What a container was started with never changes, so the runtime is asked once for each, and an idle node costs no request and no write.
package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

const (
	concurrency = 5
	// awayInterval is how often a runtime that is away is asked again.
	awayInterval = 5 * time.Second
	// maxTries is how often the runtime is asked for the facts of a container, and retryInterval the pause between: it may be busy for a
	// moment.
	maxTries      = 5
	retryInterval = 3 * time.Second
	// A daemon that starts on a full node writes on its Pods slowly: no update waits for all of them.
	writesPerSecond, writeBurst = 5, 20
)

// Scope returns what the worker watches: the Pods of its node.
func Scope(node string) worker.Scope { return worker.PodsOf(node) }

// Add adds the worker. Containers are stopped until the context ends.
func Add(ctx context.Context, mgr ctrlmanager.Manager, c worker.Config) error {
	r := &reconciler{
		Config: c, client: mgr.GetClient(), limiter: rate.NewLimiter(writesPerSecond, writeBurst), restarts: newRestarts(ctx, c),
		memory: map[types.NamespacedName]map[string]*record{},
	}
	return ctrl.NewControllerManagedBy(mgr).Named("facts").For(&corev1.Pod{}).WithOptions(worker.Options(concurrency)).Complete(r)
}

type reconciler struct {
	worker.Config
	client   client.Client
	limiter  *rate.Limiter
	restarts *restarts

	mu sync.Mutex
	// memory holds a record for each container by its ID. Those of a Pod are used by one reconcile at a time; the lock is that of the outer
	// map.
	memory map[types.NamespacedName]map[string]*record
}

// record is what is known of one container.
type record struct {
	// fact is nil before it is known.
	fact *Fact
	// failed counts failed tries.
	failed int
}

// records returns those of a Pod's containers, and forgets those of containers that the Pod does not have any more.
func (r *reconciler) records(pod types.NamespacedName, all []container) map[string]*record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]*record{}
	for _, c := range all {
		id := c.status.ContainerID
		if out[id] = r.memory[pod][id]; out[id] == nil {
			out[id] = &record{}
		}
	}
	r.memory[pod] = out
	return out
}

func (r *reconciler) forget(pod types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory, pod)
}

// Reconcile writes the facts of one Pod, and restarts those of its containers that have to be.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &corev1.Pod{}
	err := r.client.Get(ctx, request.NamespacedName, p)
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("reading Pod %s: %w", request, err)
	}
	if err != nil || p.DeletionTimestamp != nil || !IsTold(p) {
		r.forget(request.NamespacedName)
		r.restarts.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	known, err := r.facts(ctx, p)
	if cri.IsAway(err) {
		return ctrl.Result{RequeueAfter: awayInterval}, nil
	}
	if err != nil {
		log.FromContext(ctx).Info("What a container runs with is not known, asking again", "problem", err.Error())
		return ctrl.Result{RequeueAfter: retryInterval}, nil
	}
	wait, err := r.write(ctx, p, known)
	if err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	return ctrl.Result{RequeueAfter: r.restarts.stop(ctx, p, ToRestart(p, known))}, nil
}

// facts returns the facts of the Pod's containers, and asks the runtime for those that are not known.
func (r *reconciler) facts(ctx context.Context, p *corev1.Pod) (map[string]Fact, error) {
	all := containers(p)
	records := r.records(client.ObjectKeyFromObject(p), all)
	known := map[string]Fact{}
	var failed []error
	for _, c := range all {
		id := c.status.ContainerID
		if records[id].fact == nil {
			failed = append(failed, r.askFor(ctx, p, c, records[id]))
		}
		if records[id].fact != nil {
			known[id] = *records[id].fact
		}
	}
	return known, errors.Join(failed...)
}

// askFor asks the runtime for the fact of one container, and sets it in the record. It stays unknown when the runtime does not have the
// container any more.
func (r *reconciler) askFor(ctx context.Context, p *corev1.Pod, c container, to *record) error {
	runtime, id, err := r.Runtimes.Of(c.status.ContainerID)
	if err != nil {
		return err
	}
	started, err := runtime.Started(ctx, id)
	if cri.IsAway(err) {
		return err
	}
	if err == nil && started != nil && started.Environment == nil && takesMetadata(p, c) {
		err = fmt.Errorf("container runtime %s does not tell the environment of container %s", runtime.Name, id)
	}
	if err != nil {
		to.failed++
		if to.failed < maxTries {
			return err
		}
		r.Events.Eventf(p, corev1.EventTypeWarning, "FailedContainerMeta",
			"What container %s runs with can't be told: %v", c.spec.Name, err)
		if started == nil {
			to.fact = &Fact{}
			return nil
		}
	}
	if started == nil {
		return nil
	}
	to.fact = &Fact{Hash: started.Hash}
	if started.Environment != nil {
		to.fact.Environment = map[string]string{}
		for _, variable := range inplace.Environment(p, c.spec) { // no more is kept: the rest may be secret
			if value, ok := started.Environment[variable.Name]; ok {
				to.fact.Environment[variable.Name] = value
			}
		}
	}
	return nil
}

// write writes the facts on the Pod if it does not have them, and returns how long that has to wait.
func (r *reconciler) write(ctx context.Context, p *corev1.Pod, known map[string]Fact) (wait time.Duration, err error) {
	set := Describe(p, known)
	if len(set.Containers) == 0 {
		return 0, nil
	}
	text, err := json.Marshal(set)
	if err != nil {
		return 0, fmt.Errorf("encoding the facts of Pod %s: %w", p.Name, err)
	}
	if p.Annotations[keys.RuntimeContainersMeta] == string(text) {
		return 0, nil
	}
	if wait := worker.Delay(r.limiter); wait > 0 {
		return wait, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "annotations": map[string]string{keys.RuntimeContainersMeta: string(text)},
	}})
	if err != nil {
		return 0, fmt.Errorf("encoding the facts of Pod %s: %w", p.Name, err)
	}
	err = r.client.Status().Patch(ctx, p.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another Pod of that name
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("writing the facts of Pod %s: %w", p.Name, err)
	}
	log.FromContext(ctx).V(1).Info("Told what containers run with", "containers", len(set.Containers))
	return 0, nil
}
