package fleet

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// history is what a watch tells of all Pods.
type history struct {
	*testing.T
	mu sync.Mutex
	// ready says of the Pods of each CloneSet that are not being deleted whether they are ready.
	ready map[string]map[types.UID]bool
	// ever is every Pod that was seen, by CloneSet.
	ever map[string]map[types.UID]bool
	// rollout means that all Pods were there and ready once.
	rollout bool
	wrong   []string
	events  int
	stop    func()
}

// record begins to watch. An informer does it, because a watch that the API server ends under load has to be resumed.
func (f *fleet) record() *history {
	f.Helper()
	clients, err := kubernetes.NewForConfig(f.Config)
	f.Must(err)
	h := &history{T: f.T, ready: map[string]map[types.UID]bool{}, ever: map[string]map[types.UID]bool{}}
	for i := range f.sets {
		h.ready[nameOf(i)], h.ever[nameOf(i)] = map[types.UID]bool{}, map[types.UID]bool{}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { h.see(object.(*corev1.Pod)) },
		DeleteFunc: h.forget,
	})
	f.Must(err)
	stop := make(chan struct{})
	factory.Start(stop)
	h.stop = func() { close(stop); factory.Shutdown() }
	if !cache.WaitForCacheSync(f.Ctx.Done(), registration.HasSynced) {
		f.Fatal("the Pods can't be watched")
	}
	return h
}

func (h *history) see(p *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events++
	name := p.Labels["app"]
	h.ever[name][p.UID] = true
	if p.DeletionTimestamp != nil {
		delete(h.ready[name], p.UID)
	} else {
		h.ready[name][p.UID] = pod.IsReady(p)
	}
	h.weigh(name)
}

func (h *history) forget(object any) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		if last, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
			p, ok = last.Obj.(*corev1.Pod)
		}
	}
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ready[p.Labels["app"]], p.UID)
	h.weigh(p.Labels["app"])
}

// weigh compares what is there with what the CloneSet promises.
func (h *history) weigh(name string) {
	ready := 0
	for _, isReady := range h.ready[name] {
		if isReady {
			ready++
		}
	}
	if n := len(h.ready[name]); n > replicas {
		h.wrong = append(h.wrong, fmt.Sprintf("%s had %d Pods", name, n))
	}
	if h.rollout && ready < replicas-maxUnavailable {
		h.wrong = append(h.wrong, fmt.Sprintf("%s had only %d ready Pods", name, ready))
	}
}

// expectRollout judges availability from now on.
func (h *history) expectRollout() {
	h.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, seen := range h.ever {
		if len(seen) != replicas {
			h.Errorf("%s has had %d Pods, want %d", name, len(seen), replicas)
		}
	}
	h.rollout = true
}

// judge tells what was wrong.
func (h *history) judge() {
	h.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Logf("%d events of Pods", h.events)
	for name, seen := range h.ever {
		want := 2 * replicas
		if isInPlace(name) {
			want = replicas
		}
		if len(seen) != want {
			h.Errorf("%s has had %d Pods, want %d", name, len(seen), want)
		}
	}
	for _, wrong := range h.wrong[:min(10, len(h.wrong))] {
		h.Error(wrong)
	}
}
