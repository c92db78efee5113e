package manager

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/seed-69ecc383/kruise/internal/admission/server"
)

// ending is how a manager ends, whether it is asked to or loses its Lease: webhooks, and the caches that they read, go on until the API
// server has had time to learn that this manager is no longer ready. There is no moment without a manager, nor one whose caches stand
// still.
//
// A manager that is asked to end goes on with everything meanwhile. One that loses its Lease stops its controllers at once, as another one
// leads.
type ending struct {
	server *server.Server
	// drain returns once requests have had time to go elsewhere, for whatever reason the manager ends.
	drain func()
	// serving are the webhooks and caches that run.
	serving sync.WaitGroup
}

// newEnding returns how a manager with these options ends.
func newEnding(o Options, s *server.Server) *ending {
	return &ending{server: s, drain: sync.OnceFunc(func() {
		s.Drain()
		if o.Webhook.Host == "" { // no other manager takes the requests of one that is reached by its name
			time.Sleep(o.ShutdownDelay)
		}
	})}
}

// after returns a context that ends after another one, once requests have had time to go elsewhere.
func (e *ending) after(ctx context.Context) context.Context {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		defer stop()
		e.drain()
	})
	return running
}

// outlive runs what webhooks need until they are needed no more, although the context has ended.
func (e *ending) outlive(ctx context.Context, run func(context.Context) error) error {
	e.serving.Add(1)
	defer e.serving.Done()
	return run(e.after(ctx))
}

// wait returns when the last webhook has been answered.
func (e *ending) wait() { e.serving.Wait() }

// webhooks returns the webhook server as the manager runs it.
func (e *ending) webhooks() lastingServer { return lastingServer{Server: e.server, ending: e} }

// newCache makes a cache as the manager runs it.
func (e *ending) newCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, o)
	return lastingCache{Cache: c, ending: e}, err
}

type lastingServer struct {
	*server.Server
	ending *ending
}

// Start serves until webhooks are needed no more.
func (s lastingServer) Start(ctx context.Context) error { return s.ending.outlive(ctx, s.Server.Start) }

type lastingCache struct {
	cache.Cache
	ending *ending
}

// Start fills the cache until webhooks are needed no more.
func (c lastingCache) Start(ctx context.Context) error { return c.ending.outlive(ctx, c.Cache.Start) }
