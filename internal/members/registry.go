package members

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// Registry connects to members. Nothing that it is asked waits for one.
type Registry interface {
	// Want says which members an owner needs, all of them each time, and Forget that it needs none any more.
	Want(owner types.UID, refs ...clusters.Ref)
	Forget(owner types.UID)
	// Known returns all members that are connected to, or are to be.
	Known() []clusters.Ref
	// Look returns a member as it was last seen.
	Look(ref clusters.Ref) View
}

// View is a member as it was last seen.
type View struct {
	connection.State
	// Labels are those of the cluster object.
	Labels map[string]string
	// Session numbers the connection, one that came later by a higher number.
	Session int
	// Link reads and writes the member; nil while it can't be.
	Link Link
}

// Link is one connection to a member.
type Link interface {
	// Cached reads what the hub has in the member from a cache, and Live reads the member itself.
	Cached() client.Reader
	Live() client.Reader
	// Writer writes in the member.
	Writer() apply.Writer
	// Seen tells how far the cache of a kind has come.
	Seen(kind schema.GroupVersionKind) (string, error)
	// Serves reports whether the member serves a kind, and whether Cached has it.
	Serves(kind schema.GroupVersionKind) (served, readable bool)
}

// Over returns the registry of members that are other clusters.
func Over(r *clusters.Registry) Registry { return over{r} }

type over struct{ *clusters.Registry }

// Look returns a member as it was last seen.
func (o over) Look(ref clusters.Ref) View {
	view := o.Registry.Look(ref)
	out := View{State: view.State, Labels: view.Labels, Session: view.Session}
	if view.Ready() {
		out.Link = link{view}
	}
	return out
}

// link is the connection of a view of a cluster.
type link struct{ clusters.View }

// Live reads the member itself.
func (l link) Live() client.Reader { return l.Client() }

// Writer writes in the member.
func (l link) Writer() apply.Writer {
	config, http := l.Transport()
	return apply.NewWriter(l.Client(), config, http)
}

// Seen tells how far the cache of a kind has come.
func (l link) Seen(kind schema.GroupVersionKind) (string, error) {
	informer := l.Informer(kind)
	if informer == nil {
		return "", fmt.Errorf("%s is not watched", kind.Kind)
	}
	return apply.LastSeen(informer)
}
