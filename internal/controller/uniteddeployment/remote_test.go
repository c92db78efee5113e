package uniteddeployment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/members"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// remote is another cluster, with the controllers of its workloads.
type remote struct {
	*scenario
	id      string
	kubelet *simulate.Kubelet
	// up means that it answers.
	up    bool
	saved *simulate.Saved
	// epoch is how often it went back in time.
	epoch int
	// clients are all that were ever connected.
	clients []*simulate.Client
}

// newRemote returns one more cluster.
func (s *overClusters) newRemote() *remote {
	cluster := simulate.NewCluster(promises.Scheme(), s.Cluster.Now())
	world := *s.world
	world.Cluster = cluster
	at := &remote{scenario: newScenario(&world), id: fmt.Sprint("cluster-", len(s.remotes)+1), kubelet: simulate.NewKubelet(cluster), up: true}
	at.isOurs = func(o client.Object) bool { return o.GetLabels()[keys.HubID] == hubID }
	s.remotes = append(s.remotes, at)
	return at
}

// of returns the workloads of one UnitedDeployment.
func (r *remote) of(set *v1beta1.UnitedDeployment) []plan.Object {
	return slices.DeleteFunc(r.workloads(), func(w plan.Object) bool { return w.GetLabels()[keys.HubOwnerUID] != string(set.UID) })
}

// elsewhere has everybody in other clusters do what there is to do next.
func (s *overClusters) elsewhere() (busy bool) {
	for _, at := range s.remotes {
		at.Cluster.Sleep(s.Cluster.Now().Sub(at.Cluster.Now()))
		for _, p := range (promises.User{Cluster: at.Cluster}).Pods() {
			busy = at.kubelet.Step(p) || busy
		}
		busy = at.run() || busy
		busy = at.Cluster.Housekeep() || busy
	}
	return busy
}

// land has a write happen in another cluster that was given up.
func (s *overClusters) land() (busy bool) {
	for _, at := range s.remotes {
		for _, c := range at.clients {
			busy = c.LandLate() || busy
		}
	}
	return busy
}

// registry is what connects to other clusters, for one run of the controller.
type registry struct {
	s     *overClusters
	wants map[types.UID][]clusters.Ref
	links map[clusters.Ref]*session
	views map[clusters.Ref]members.View
	// changed is told of news for owners.
	changed  func(types.UID)
	sessions int
}

// session is one connection to another cluster.
type session struct {
	s      *overClusters
	remote *remote
	epoch  int
	client *simulate.Client
	cache  *simulate.View
}

// start returns the clusters for a controller that starts, with nothing in its memory.
func (s *overClusters) start(c promises.Connection) *members.Members {
	s.registry = &registry{s: s, wants: map[types.UID][]clusters.Ref{}, links: map[clusters.Ref]*session{}, views: map[clusters.Ref]members.View{}}
	s.tasks = nil
	m := members.New(members.Options{
		Registry: s.registry, HubID: hubID, Scheme: promises.Scheme(), Events: &record.FakeRecorder{}, Lists: Lists, Parallel: 1, Now: c.Now,
		Tombstones: &members.Tombstones{Namespace: "default", Hub: hub{Reader: c.Live.Reader, to: c.Executor.Writer}},
		Go:         func(do func()) { s.tasks = append(s.tasks, do) },
	})
	c.Executor.Elsewhere = m.Send
	m.Asked(func(owner types.NamespacedName) { s.world.Rig.Ask(owner) })
	s.changed = m.Changed
	wanted := Wants(c.Live.Reader)
	if s.mistakes.wants != nil {
		wanted = s.mistakes.wants(wanted)
	}
	s.sweeper = &members.Sweeper{Members: m, Wants: wanted}
	return m
}

// hub writes to the hub's API server.
type hub struct {
	client.Reader
	client.Writer
	to apply.Writer
}

// Create creates a ConfigMap.
func (h hub) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	return h.to.Create(ctx, o)
}

// Patch patches a ConfigMap.
func (h hub) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	return h.to.Patch(ctx, o, "", patch.Type(), body)
}

// task does one thing that nobody waits for.
func (s *overClusters) task() bool {
	if len(s.tasks) == 0 {
		return false
	}
	do := s.tasks[0]
	s.tasks = s.tasks[1:]
	do()
	return true
}

// sweep sweeps what has to be swept, and reports whether anything was.
func (s *overClusters) sweep() bool {
	count := func() (n int64) {
		n = s.Cluster.Revision()
		for _, at := range s.remotes {
			n += at.Cluster.Revision()
		}
		return n
	}
	before := count()
	s.sweeping = !s.forgetful
	if s.sweeping && s.sweeper != nil {
		s.sweeper.Sweep(context.Background())
	}
	s.sweeping = false
	return count() != before
}

// stones returns what is stored of what was left behind, each as a cluster and a place.
func (s *overClusters) stones() (out []string) {
	key := simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "default", Name: "kruise-multicluster-tombstones"}
	stored, _ := s.Cluster.Get(key).(*corev1.ConfigMap)
	if stored == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(stored.Data)) {
		id, _, _ := strings.Cut(key, ".")
		out = append(out, id+" "+stored.Data[key])
	}
	return out
}

// Want implements members.Registry.
func (r *registry) Want(owner types.UID, refs ...clusters.Ref) {
	r.wants[owner] = refs
	if len(refs) == 0 {
		delete(r.wants, owner)
	}
}

// Forget implements members.Registry.
func (r *registry) Forget(owner types.UID) { delete(r.wants, owner) }

// Known implements members.Registry.
func (r *registry) Known() []clusters.Ref {
	var out []clusters.Ref
	for _, refs := range r.wants {
		out = append(out, refs...)
	}
	slices.SortFunc(out, func(a, b clusters.Ref) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// Look implements members.Registry.
func (r *registry) Look(ref clusters.Ref) members.View {
	if view, ok := r.views[ref]; ok {
		return view
	}
	return members.View{State: connection.Begin()}
}

// isWatched reports whether somebody wants a cluster.
func (r *registry) isWatched(name string) bool {
	return slices.ContainsFunc(r.Known(), func(ref clusters.Ref) bool { return ref.Name == name })
}

// connect has one connection see how its cluster stands, and reports whether it was not known yet.
func (s *overClusters) connect() bool {
	if s.calm {
		s.leadAll()
	}
	for _, ref := range s.Known() {
		at, link, view := s.names[ref.Name], s.links[ref], s.Look(ref)
		switch {
		case !at.up && view.Reason != connection.Unreachable:
			view.Link = nil
			view.State = connection.State{
				Reason: connection.Unreachable, Message: fmt.Sprint(connection.Unreached, s.Rand.Intn(1000)), ID: view.ID, LastContact: view.LastContact,
			}
		case at.up && (view.Reason != connection.Connected || link.remote != at || link.epoch != at.epoch):
			s.sessions++
			link = s.join(at)
			s.links[ref] = link
			view = members.View{
				State:   connection.State{Reason: connection.Connected, ID: at.id, LastContact: s.Cluster.Now()},
				Session: s.sessions, Link: link,
			}
		default:
			continue
		}
		s.views[ref] = view
		s.news(ref)
		return true
	}
	return false
}

// news tells the owners that want a cluster of news.
func (r *registry) news(ref clusters.Ref) {
	for _, owner := range slices.Sorted(maps.Keys(r.wants)) {
		if slices.Contains(r.wants[owner], ref) {
			r.changed(owner)
		}
	}
}

// join makes a connection with caches that are filled.
func (s *overClusters) join(at *remote) *session {
	out := &session{s: s, remote: at, epoch: at.epoch, client: at.Cluster.Connect("controller", s.Rand), cache: at.Cluster.NewView()}
	if !s.calm && s.world.Seed%3 != 0 {
		out.client.SetFaults(simulate.Faults{Lost: 0.04, Dropped: 0.04, Late: 0.04, Conflict: 0.03, Denied: 0.03})
	}
	at.clients = append(at.clients, out.client)
	for _, watched := range []client.Object{
		&appsv1.Deployment{}, &v1beta1.CloneSet{}, &appsv1.StatefulSet{}, &v1beta1.StatefulSet{}, &corev1.Pod{},
	} {
		out.cache.Watch(watched)
	}
	return out
}

// deliver has the cache of a connection take over something that it has missed.
func (s *overClusters) deliver() bool {
	for _, ref := range s.Known() {
		link := s.links[ref]
		if link == nil || !link.remote.up || s.Look(ref).Link == nil {
			continue
		}
		lagging := link.cache.Lagging()
		if len(lagging) == 0 {
			continue
		}
		e := link.cache.Deliver(lagging[s.Rand.Intn(len(lagging))])
		for _, o := range []client.Object{e.Old, e.New} {
			if o != nil && o.GetLabels()[keys.HubOwnerUID] != "" {
				s.changed(types.UID(o.GetLabels()[keys.HubOwnerUID]))
				break
			}
		}
		return true
	}
	return false
}
