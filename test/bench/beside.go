package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// besideReplicas is how many Pods a workload beside the measured one has, and besideEvery the time after which one of them is deleted.
const (
	besideReplicas = 4
	besideEvery    = time.Second
)

// beside is a small workload of a contender beside the one that is measured. One Pod of it is deleted every second: how long its controller
// takes to create another says how long changes wait while a large workload is worked on. Both are told by one watch, so that a watch that
// is late is not counted.
type beside struct {
	client client.Client
	stop   func()

	mu sync.Mutex
	// pods are those that are there, by UID: after a thousand others, the controller gives a Pod the name of an earlier one.
	pods map[types.UID]*corev1.Pod
	// lost are the Pods that are on their way out or gone; unanswered are the times at which that was seen, of those in place of which no
	// Pod has been created yet, oldest first.
	lost       map[types.UID]bool
	unanswered []time.Time
	took       []time.Duration
}

// putBeside has phases be measured with such a workload beside, until takeBeside.
func (b *bench) putBeside(ctx context.Context, c contender, namespace string) (err error) {
	b.beside, err = b.newBeside(ctx, c, namespace)
	return err
}

func (b *bench) takeBeside() {
	b.beside.stop()
	b.beside = nil
}

// newBeside makes the workload, and waits until its Pods run.
func (b *bench) newBeside(ctx context.Context, c contender, namespace string) (*beside, error) {
	w, err := b.workload(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	seen, err := watchPods(ctx, b.of(c), w.object.GetNamespace())
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	if err := b.edit(ctx, w.object, func() { w.replicas(besideReplicas) }); err != nil {
		return nil, err
	}
	if err := b.await(ctx, w, besideReplicas, seen); err != nil {
		return nil, fmt.Errorf("the workload beside: %w", err)
	}
	x := &beside{client: b.hub().Client, pods: map[types.UID]*corev1.Pod{}, lost: map[types.UID]bool{}}
	return x, x.watch(ctx, b.hub(), w.object.GetNamespace())
}

func (x *beside) watch(ctx context.Context, in *site, namespace string) error {
	ctx, cancel := context.WithCancel(ctx)
	factory, err := followPods(ctx, in, namespace, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { x.see(object.(*corev1.Pod), false) },
		UpdateFunc: func(_, object any) { x.see(object.(*corev1.Pod), false) },
		DeleteFunc: func(object any) {
			if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = last.Obj
			}
			x.see(object.(*corev1.Pod), true)
		},
	})
	if err != nil {
		cancel()
		return err
	}
	x.stop = func() {
		cancel()
		factory.Shutdown()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.took = nil // of the Pods that were there
	return nil
}

// see takes note of a Pod that was created, or that is to go.
func (x *beside) see(p *corev1.Pod, gone bool) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.pods[p.UID]; !known && !gone {
		x.pods[p.UID] = p
		if len(x.unanswered) > 0 {
			x.took = append(x.took, now.Sub(x.unanswered[0]))
			x.unanswered = x.unanswered[1:]
		}
	}
	if (gone || p.DeletionTimestamp != nil) && !x.lost[p.UID] {
		x.lost[p.UID] = true
		x.unanswered = append(x.unanswered, now)
	}
	if gone {
		delete(x.pods, p.UID)
	}
}

// going returns how many of the Pods that are there are to go.
func (x *beside) going() int {
	n := 0
	for uid := range x.pods {
		if x.lost[uid] {
			n++
		}
	}
	return n
}

// any returns a Pod that is to stay; nil while an earlier loss is not answered.
func (x *beside) any() *corev1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []*corev1.Pod
	for _, p := range x.pods {
		if !x.lost[p.UID] {
			out = append(out, p)
		}
	}
	if len(out) == 0 || len(x.unanswered) > 0 {
		return nil
	}
	return out[rand.IntN(len(out))]
}

// during deletes Pods while something is done, and returns how many milliseconds it took until others were created; nil if no Pod was
// deleted meanwhile, as none is in less than a second.
func (x *beside) during(ctx context.Context, do func()) (*quantiles, error) {
	x.mu.Lock()
	x.took = nil
	x.mu.Unlock()
	began, asked := time.Now(), 0
	done := make(chan struct{})
	var deleting sync.WaitGroup
	var problem error
	deleting.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(besideEvery):
			}
			if p := x.any(); p != nil {
				asked++
				err := x.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
				problem = errors.Join(problem, client.IgnoreNotFound(err))
			}
		}
	})
	do()
	close(done)
	deleting.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	took := x.took
	for _, since := range x.unanswered { // these wait still
		took = append(took, time.Since(since))
	}
	if len(took) == 0 {
		if lasted := time.Since(began); lasted > 3*besideEvery {
			fmt.Fprintf(os.Stderr, "no answer was measured in %.0f s: %d Pods are beside, of which %d are to go; %d were asked to\n",
				lasted.Seconds(), len(x.pods), x.going(), asked)
		}
		return nil, problem
	}
	answer := quantilesOf(took)
	return &answer, problem
}
