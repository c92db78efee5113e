package clusters

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// Options say how clusters are found and reached.
type Options struct {
	// Hub reads cluster objects, around the caches.
	Hub client.Reader
	// HubID is the identity of the hub: the UID of its namespace kube-system.
	HubID string
	// Scheme has the kinds of workloads.
	Scheme *runtime.Scheme
	// UserAgent is the name by which the clusters' audit logs know the manager.
	UserAgent string
	// Programs make credentials for ClusterProfiles.
	Programs Programs
	// Changed is called when there is news for the owner of a UID: of a cluster that it wants, or of what it has there. It must not wait.
	Changed func(owner types.UID)
	Times   connection.Times
	Now     func() time.Time
	Log     logr.Logger
}

func (o *Options) hub() hub { return hub{o.Hub, o.Programs} }

// Registry is all clusters that somebody wants.
type Registry struct {
	options Options
	running sync.WaitGroup
	// ended is the context of the goroutines of all links, which begin whenever somebody wants a cluster.
	ended context.Context
	end   context.CancelFunc

	mu    sync.Mutex
	links map[Ref]*link
	wants map[types.UID]map[Ref]bool
	// idle is since when nobody wants a cluster.
	idle map[Ref]time.Time

	// sessions counts the connections to all clusters, also to those that were out of the registry in between.
	sessions atomic.Int64
}

// New returns a registry that has no clusters yet.
func New(o Options) *Registry {
	r := &Registry{options: o, links: map[Ref]*link{}, wants: map[types.UID]map[Ref]bool{}, idle: map[Ref]time.Time{}}
	r.ended, r.end = context.WithCancel(context.Background())
	return r
}

// Start waits until the context ends, and then ends all connections.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.end() // after which no link begins
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// Want says which clusters an owner needs, all of them each time. Those that are new are connected to; Look does not wait for that.
func (r *Registry) Want(owner types.UID, refs ...Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[Ref]bool{}
	for _, ref := range refs {
		wanted[ref] = true
		delete(r.idle, ref)
		if r.links[ref] == nil && r.ended.Err() == nil {
			r.begin(ref)
		}
	}
	r.wants[owner] = wanted
	if len(wanted) == 0 {
		delete(r.wants, owner)
	}
}

// Forget says that an owner needs no cluster any more.
func (r *Registry) Forget(owner types.UID) { r.Want(owner) }

// Look returns a cluster as it was last seen, at once.
func (r *Registry) Look(ref Ref) View {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.links[ref]; l != nil {
		return *l.view.Load()
	}
	return View{State: connection.Begin()}
}

// Known returns all clusters that are connected to, or are to be.
func (r *Registry) Known() []Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.links))
}

func (r *Registry) begin(ref Ref) {
	l := newLink(&r.options, ref, func() int { return int(r.sessions.Add(1)) })
	r.links[ref] = l
	r.running.Go(func() {
		l.run(r.ended, func() bool { return r.keeps(ref) }, func() { r.tell(ref) })
	})
}

// keeps reports whether a connection is kept. One that nobody wants is kept for a while; then it is out of the registry.
func (r *Registry) keeps(ref Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.options.Now()
	since, idle := r.idle[ref]
	switch {
	case len(r.usersOf(ref)) > 0:
		delete(r.idle, ref)
	case !idle:
		r.idle[ref] = now
	case now.Sub(since) >= r.options.Times.Idle:
		delete(r.idle, ref)
		delete(r.links, ref)
		return false
	}
	return true
}

func (r *Registry) tell(ref Ref) {
	r.mu.Lock()
	users := r.usersOf(ref)
	r.mu.Unlock()
	for _, user := range users {
		r.options.Changed(user)
	}
}

func (r *Registry) usersOf(ref Ref) []types.UID {
	var users []types.UID
	for user, wanted := range r.wants {
		if wanted[ref] {
			users = append(users, user)
		}
	}
	return users
}
