package clusters

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// View is a cluster as it was last seen. It does not change, and asking it never waits.
type View struct {
	connection.State
	// Labels are those of the cluster object; nil if there is none, or none that may be read.
	Labels map[string]string
	// Session numbers the connection, one that came later by a higher number: with each new one, what was read before may be outdated.
	Session int

	session *session
	// kinds is how many kinds can be read.
	kinds int
}

// Ready reports whether the cluster can be read and written.
func (v View) Ready() bool { return v.Reason == connection.Connected && v.session != nil }

// Serves reports whether the cluster serves a kind, and whether it can be read here: a kind that was installed lately has an empty cache
// for a moment.
func (v View) Serves(kind schema.GroupVersionKind) (served, readable bool) {
	if v.session == nil {
		return false, false
	}
	informer := v.session.informer(kind)
	return informer != nil, informer != nil && informer.HasSynced()
}

// Informer returns what fills the cache of a kind; nil for one that is not watched.
func (v View) Informer(kind schema.GroupVersionKind) cache.Informer {
	if v.session == nil {
		return nil
	}
	return v.session.informer(kind)
}

// Cached returns what the cluster holds of the hub, from a cache; nil if nothing is known.
func (v View) Cached() client.Reader {
	if v.session == nil {
		return nil
	}
	return v.session.cache
}

// Client returns a client that reads and writes the cluster itself; nil if there is no connection. What it does may take as long as the
// cluster takes.
func (v View) Client() client.Client {
	if v.session == nil {
		return nil
	}
	return v.session.client
}

// Transport returns what the client sends its requests with; nil if there is no connection.
func (v View) Transport() (*rest.Config, *http.Client) {
	if v.session == nil {
		return nil, nil
	}
	return v.session.config, v.session.http
}

// link keeps the connection to one cluster.
type link struct {
	*Options
	ref  Ref
	view atomic.Pointer[View]
	// next numbers a session.
	next func() int

	// What follows belongs to the link's goroutine.
	state      connection.State
	read       *found
	print      string
	session    *session
	number     int // of the session, or of the last one
	discovered time.Time
}

func newLink(o *Options, ref Ref, next func() int) *link {
	l := &link{Options: o, ref: ref, next: next, state: connection.Begin()}
	l.view.Store(&View{State: l.state})
	return l
}

// run keeps the connection until the context ends, or nobody wants it any more.
func (l *link) run(ctx context.Context, isWanted func() bool, changed func()) {
	defer l.leave()
	for isWanted() {
		l.step(ctx)
		if l.publish() {
			changed()
		}
		wait := l.Times.Probe
		if due := l.state.Next.Sub(l.Now()); l.state.Next.After(l.Now()) && due < wait {
			wait = due
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// step reads the cluster object, and joins or probes the cluster if that is due.
func (l *link) step(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, l.Times.ProbeLimit)
	read, err := l.hub().read(limited, l.ref)
	cancel()
	switch {
	case err == nil:
		l.read = &read
	case l.read == nil:
		l.state.Message = err.Error() // the hub did not answer, and will be asked again
		return
	}
	if l.read.why != nil {
		l.leave()
		l.state, l.print = l.state.Refused(l.read.why), ""
		return
	}
	now := l.Now()
	switch rotated := l.print != l.read.print; {
	case rotated:
		l.join(ctx, now)
	case now.Before(l.state.Next):
	case l.session == nil:
		l.join(ctx, now)
	default:
		l.probe(ctx, now)
	}
}

// join makes a new connection in the place of the one before, if there is one, which goes on until the new one is there.
func (l *link) join(ctx context.Context, now time.Time) {
	if l.print != l.read.print {
		l.state.Failures = 0 // of another address, or with other credentials
	}
	l.print = l.read.print
	limited, cancel := context.WithTimeout(ctx, l.Times.Join)
	defer cancel()
	session, why := join(limited, l.read.access, l.Options)
	l.leave()
	if why != nil {
		l.state = l.state.JoinFailed(l.Now(), why, l.Times)
		l.Log.Info("Cannot connect to the cluster", "cluster", l.ref.String(), "reason", why.Reason, "problem", why.Message)
		return
	}
	l.session, l.discovered = session, now
	l.number = l.next()
	l.state = l.state.JoinedAt(l.Now(), session.id, l.Times)
	l.Log.Info("Connected to the cluster", "cluster", l.ref.String(), "id", session.id)
}

// probe asks the cluster how it is, and now and then for new kinds.
func (l *link) probe(ctx context.Context, now time.Time) {
	limited, cancel := context.WithTimeout(ctx, l.Times.ProbeLimit)
	defer cancel()
	turn, why := l.session.probe(limited)
	if turn != same {
		l.Log.Info("Connecting anew", "cluster", l.ref.String(), "because", string(turn))
		l.join(ctx, now)
		return
	}
	before := l.state.Reason
	if before == connection.Unreachable && why == nil {
		l.join(ctx, now) // its caches would try again later, and show what was long ago until then
		return
	}
	l.state = l.state.Probed(now, why, l.Times)
	if l.state.Reason != before {
		l.Log.Info("The cluster is in another state", "cluster", l.ref.String(), "reason", l.state.Reason, "because", l.state.Message)
	}
	if why == nil && now.Sub(l.discovered) >= l.Times.Rediscovery {
		if err := l.session.discover(limited); err != nil {
			l.Log.Info("Cannot ask the cluster for its kinds", "cluster", l.ref.String(), "problem", err.Error())
			return // and ask again with the next probe
		}
		l.discovered = now
	}
}

// leave ends the connection.
func (l *link) leave() {
	if l.session != nil {
		l.session.close()
		l.session = nil
	}
}

// publish shows what is known now, and reports whether users of the cluster have to know.
func (l *link) publish() (news bool) {
	now := &View{State: l.state, Session: l.number, session: l.session, kinds: l.session.filled()}
	if l.read != nil {
		now.State, now.Labels = now.State.Overlaid(l.read.ill), maps.Clone(l.read.labels)
	}
	before := l.view.Swap(now)
	return before.Reason != now.Reason || before.Session != now.Session || before.ID != now.ID || before.kinds != now.kinds ||
		!maps.Equal(before.Labels, now.Labels)
}
