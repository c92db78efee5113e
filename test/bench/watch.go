package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// podWatch counts the Pods of a namespace as its events come in, by name: no two clusters of a workload have Pods of one name.
type podWatch struct {
	stop   func()
	mu     sync.Mutex
	ready  map[string]bool
	most   int
	worst  int
	steady int
}

// watchPods counts the Pods of a namespace in clusters from what is there now; availability is judged against the number of Pods that were
// ready at the start. Informers do the watching, because a watch that the API server ends under load has to be resumed.
func watchPods(ctx context.Context, in []*site, namespace string) (*podWatch, error) {
	seen := &podWatch{ready: map[string]bool{}}
	ctx, cancel := context.WithCancel(ctx)
	var factories []informers.SharedInformerFactory
	seen.stop = func() {
		cancel()
		for _, f := range factories {
			f.Shutdown()
		}
	}
	for _, s := range in {
		factory, err := seen.watch(ctx, s, namespace)
		if err != nil {
			seen.stop()
			return nil, fmt.Errorf("listing the Pods of %s: %w", namespace, err)
		}
		factories = append(factories, factory)
	}
	seen.begin()
	return seen, nil
}

// watch counts the Pods of one cluster, too. It returns when those that are there are counted.
func (s *podWatch) watch(ctx context.Context, in *site, namespace string) (informers.SharedInformerFactory, error) {
	return followPods(ctx, in, namespace, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { s.see(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) { s.forget(object) },
	})
}

// followPods has handlers told of the Pods of a namespace. It returns when they know those that are there.
func followPods(ctx context.Context, in *site, namespace string, tell cache.ResourceEventHandler) (informers.SharedInformerFactory, error) {
	clients, err := kubernetes.NewForConfig(in.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(tell)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return factory, ctx.Err()
	}
	return factory, nil
}

// begin forgets what was counted while the first Pods came in.
func (s *podWatch) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steady, s.most, s.worst = s.readyPods(), len(s.ready), 0
}

func (s *podWatch) readyPods() int {
	n := 0
	for _, ready := range s.ready {
		if ready {
			n++
		}
	}
	return n
}

func (s *podWatch) see(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.DeletionTimestamp != nil {
		delete(s.ready, p.Name)
	} else {
		s.ready[p.Name] = pod.IsReady(p)
	}
	s.count()
}

func (s *podWatch) forget(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	_, name, _ := cache.SplitMetaNamespaceKey(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, name)
	s.count()
}

func (s *podWatch) count() {
	s.most = max(s.most, len(s.ready))
	s.worst = max(s.worst, s.steady-s.readyPods())
}

func (s *podWatch) settled(want int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) == want && s.readyPods() == want
}

func (s *podWatch) extremes() (unavailable, pods int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worst, s.most
}
