package process

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/seed-69ecc383/kruise/internal/admission/server"
)

// Ending is how a manager ends, whether it is asked to or loses its Lease: webhooks, and the caches that they read, go on until the API
// server has had time to learn that this manager is no longer ready. There is no moment without a manager, nor one whose caches stand
// still.
//
// A manager that is asked to end goes on with everything meanwhile. One that loses its Lease stops its controllers at once, as another one
// leads.
type Ending struct {
	server *server.Server
	// drain returns once requests have had time to go elsewhere, for whatever reason the manager ends.
	drain func()
	// serving are the webhooks and caches that run.
	serving sync.WaitGroup
}

// NewEnding returns how a manager ends that goes on for a delay while it is no longer ready.
func NewEnding(o WebhookOptions, delay time.Duration, s *server.Server) *Ending {
	return &Ending{server: s, drain: sync.OnceFunc(func() {
		s.Drain()
		if o.Host == "" { // no other manager takes the requests of one that is reached by its name
			time.Sleep(delay)
		}
	})}
}

// After returns a context that ends after another one, once requests have had time to go elsewhere.
func (e *Ending) After(ctx context.Context) context.Context {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		defer stop()
		e.drain()
	})
	return running
}

// outlive runs what webhooks need until they are needed no more, although the context has ended.
func (e *Ending) outlive(ctx context.Context, run func(context.Context) error) error {
	e.serving.Add(1)
	defer e.serving.Done()
	return run(e.After(ctx))
}

// Wait returns when the last webhook has been answered.
func (e *Ending) Wait() { e.serving.Wait() }

// Webhooks returns the webhook server as the manager runs it.
func (e *Ending) Webhooks() webhook.Server { return lastingServer{Server: e.server, ending: e} }

// NewCache makes a cache as the manager runs it.
func (e *Ending) NewCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, o)
	return lastingCache{Cache: c, ending: e}, err
}

type lastingServer struct {
	*server.Server
	ending *Ending
}

// Start serves until webhooks are needed no more.
func (s lastingServer) Start(ctx context.Context) error { return s.ending.outlive(ctx, s.Server.Start) }

type lastingCache struct {
	cache.Cache
	ending *Ending
}

// Start fills the cache until webhooks are needed no more.
func (c lastingCache) Start(ctx context.Context) error { return c.ending.outlive(ctx, c.Cache.Start) }
