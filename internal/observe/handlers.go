package observe

import (
	"errors"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// podHandlers tells all handlers of an informer of Pods, one after the other. The informer itself knows only this one.
//
// An informer that knows a handler queues each event for it, and all Pods that are there when it is added. A manager adds eighteen when it
// begins to lead: in a cluster of 100,000 Pods that were some 100 MB, and each of them had each Pod decoded anew. Here a Pod is decoded
// once for all of them, and handlers that are added about the same time are told together of what is there.
//
// Handlers must not block: events wait for them. A handler that is added to an informer that runs may be told twice of what happens
// meanwhile, or of an earlier state after a later one, of which it is then told again.
type podHandlers struct {
	informer cache.SharedIndexInformer
	// self is how the informer knows these handlers.
	self cache.ResourceEventHandlerRegistration

	// telling is held while handlers are told of anything.
	telling  sync.Mutex
	handlers []*podRegistration

	mu sync.Mutex
	// joining are handlers that have not been told yet of what is there; isJoining says that somebody is about to tell them.
	joining   []*podRegistration
	isJoining bool
}

var _ cache.ResourceEventHandler = &podHandlers{}

func newPodHandlers(informer cache.SharedIndexInformer) *podHandlers {
	h := &podHandlers{informer: informer}
	h.self, _ = informer.AddEventHandler(h) // fails only of an informer that was stopped
	return h
}

// add adds a handler. An informer without Pods, above all one that does not run yet, tells it of each event once.
func (h *podHandlers) add(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	if h.self == nil || h.informer.IsStopped() {
		return nil, errors.New("the informer of Pods was stopped, so that it takes no more handlers")
	}
	r := &podRegistration{ResourceEventHandler: handler, of: h, joined: make(chan struct{})}
	if len(h.informer.GetStore().ListKeys()) == 0 {
		h.tell([]*podRegistration{r})
		return r, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.joining = append(h.joining, r)
	if !h.isJoining {
		h.isJoining = true
		go h.join()
	}
	return r, nil
}

// join tells handlers of what is there until none of them waits for it.
func (h *podHandlers) join() {
	for {
		h.mu.Lock()
		handlers := h.joining
		h.joining, h.isJoining = nil, len(handlers) > 0
		h.mu.Unlock()
		if len(handlers) == 0 {
			return
		}
		h.tell(handlers)
	}
}

// tell tells new handlers of what is there, and has them be told of what happens from now on.
func (h *podHandlers) tell(handlers []*podRegistration) {
	h.telling.Lock()
	defer h.telling.Unlock()
	handlers = slices.DeleteFunc(handlers, func(r *podRegistration) bool { return r.removed })
	for _, object := range h.informer.GetStore().List() {
		p := podOf(object)
		for _, r := range handlers {
			r.OnAdd(p, true)
		}
	}
	h.handlers = append(h.handlers, handlers...)
	for _, r := range handlers {
		close(r.joined)
	}
}

// remove has a handler be told of nothing any more.
func (h *podHandlers) remove(r *podRegistration) {
	h.telling.Lock()
	defer h.telling.Unlock()
	r.removed = true // it may not have joined yet
	h.handlers = slices.DeleteFunc(h.handlers, func(other *podRegistration) bool { return other == r })
}

// each tells all handlers of something that is decoded only if there are any.
func (h *podHandlers) each(tell func(handlers []*podRegistration)) {
	h.telling.Lock()
	defer h.telling.Unlock()
	if len(h.handlers) > 0 {
		tell(h.handlers)
	}
}

// OnAdd tells of a Pod that is new, or was there when the informer began.
func (h *podHandlers) OnAdd(object any, initial bool) {
	h.each(func(handlers []*podRegistration) {
		p := podOf(object)
		for _, r := range handlers {
			r.OnAdd(p, initial)
		}
	})
}

// OnUpdate tells of a change.
func (h *podHandlers) OnUpdate(before, after any) {
	h.each(func(handlers []*podRegistration) {
		from, to := podOf(before), podOf(after)
		for _, r := range handlers {
			r.OnUpdate(from, to)
		}
	})
}

// OnDelete tells of a Pod that is gone.
func (h *podHandlers) OnDelete(object any) {
	h.each(func(handlers []*podRegistration) {
		p := podOf(object)
		for _, r := range handlers {
			r.OnDelete(p)
		}
	})
}

// podRegistration is a handler and what it has been told of.
type podRegistration struct {
	cache.ResourceEventHandler
	of *podHandlers
	// joined is closed when the handler was told of what was there when it was added.
	joined chan struct{}
	// removed is guarded by telling.
	removed bool

	once   sync.Once
	synced chan struct{}
}

var _ interface {
	cache.ResourceEventHandlerRegistration
	cache.DoneChecker
} = &podRegistration{}

// HasSynced reports whether the informer has listed all Pods, and the handler was told of them.
func (r *podRegistration) HasSynced() bool {
	select {
	case <-r.joined:
		return r.of.self.HasSynced()
	default:
		return false
	}
}

// HasSyncedChecker returns what tells when HasSynced is true.
func (r *podRegistration) HasSyncedChecker() cache.DoneChecker { return r }

// Name says who is waited for.
func (r *podRegistration) Name() string { return "a handler of Pods" }

// Done is closed when HasSynced is true.
func (r *podRegistration) Done() <-chan struct{} {
	r.once.Do(func() {
		r.synced = make(chan struct{})
		go func() {
			<-r.joined
			<-r.of.self.HasSyncedChecker().Done()
			close(r.synced)
		}()
	})
	return r.synced
}
