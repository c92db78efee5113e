package members

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/member"
)

// A member is swept when it is connected to, and every ten minutes.
const (
	sweepEvery = 10 * time.Minute
	sweepCheck = 5 * time.Second
)

const eventThreshold = "SweepThresholdExceeded"

// Sweeper deletes workloads in members that nobody in the hub wants any more: of owners that are gone, or that were let go while the member
// did not answer. If that would be many, the hub or the member may have been restored to an earlier state, and a person has to allow it.
type Sweeper struct {
	*Members
	// Wants reports whether the owner of a workload, as the API server of the hub has it, wants it or deletes it itself. The workload is
	// in the cluster of an identity, to which these places lead.
	Wants func(ctx context.Context, w member.Workload, in Cluster) (bool, error)
	swept map[clusters.Ref]sweep
}

// Cluster is a member by its identity.
type Cluster struct {
	// ID is the UID of its namespace kube-system.
	ID string
	// Places are those that lead to it, and those of which that is not known.
	Places []member.Place
}

// sweep is when a member was last swept.
type sweep struct {
	session int
	at      time.Time
	// allowed is what a person allowed then.
	allowed string
}

// result is what has become of a sweep.
type result struct {
	// done means that all was asked and written that had to be.
	done bool
	// found is the number of workloads, and exceeded how many of them nobody wants if these are too many to be deleted.
	found, exceeded int
}

// Start sweeps until the context ends.
func (s *Sweeper) Start(ctx context.Context) error {
	tick := time.NewTicker(sweepCheck)
	defer tick.Stop()
	for {
		s.Sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep sweeps the members of which it is time, and those in which something was left behind.
func (s *Sweeper) Sweep(ctx context.Context) {
	stones, err := s.Tombstones.read(ctx)
	if err != nil {
		return // and ask the hub again
	}
	s.Registry.Want("tombstones", stones.refs()...)
	if s.swept == nil {
		s.swept = map[clusters.Ref]sweep{}
	}
	for _, ref := range s.Registry.Known() {
		view, last := s.Registry.Look(ref), s.swept[ref]
		due := last.session != view.Session || last.allowed != view.Labels[keys.AllowSweep] || s.Now().Sub(last.at) >= sweepEvery
		if view.Link == nil || !due && !stones.has(view.ID) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		became := s.sweep(limited, ref, view, stones)
		cancel()
		if became.exceeded > 0 && due {
			s.tell(ref, became)
		}
		if became.done && due {
			s.swept[ref] = sweep{view.Session, s.Now(), view.Labels[keys.AllowSweep]}
		}
	}
}

// tell tells of workloads that are too many to be deleted, on the cluster object.
func (s *Sweeper) tell(ref clusters.Ref, became result) {
	on := &corev1.ObjectReference{Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
	s.Events.Event(on, corev1.EventTypeWarning, eventThreshold, fmt.Sprintf(
		"%d of %d workloads in the cluster belong to nobody: if neither the hub nor the cluster was restored to an earlier state, "+
			"label this object %s=%d to have them deleted", became.exceeded, became.found, keys.AllowSweep, became.exceeded))
}

// sweep sweeps one member.
func (s *Sweeper) sweep(ctx context.Context, ref clusters.Ref, view View, stones tombstones) (out result) {
	found, ok := s.found(ctx, view.Link)
	if !ok {
		return out
	}
	in := Cluster{ID: view.ID, Places: s.leadingTo(view.ID)}
	known := member.Known{Exists: map[types.UID]bool{}, Tombstone: map[types.UID]bool{}}
	known.Allowed, _ = strconv.Atoi(view.Labels[keys.AllowSweep]) // what can't be read allows nothing
	workloads := slices.SortedFunc(maps.Keys(found), func(a, b member.Workload) int {
		return strings.Compare(string(a.UID), string(b.UID))
	})
	for _, w := range workloads {
		wanted, err := s.Wants(ctx, w, in)
		if err != nil {
			return out
		}
		known.Exists[w.Owner] = known.Exists[w.Owner] || wanted
	}
	for _, w := range workloads {
		known.Tombstone[w.Owner] = stones[stone{view.ID, w.Owner}] != "" && !known.Exists[w.Owner]
	}
	remove, exceeded := member.Sweep(workloads, known)
	out = result{done: true, found: len(workloads), exceeded: exceeded}
	at := s.site(ref, view)
	for _, w := range remove {
		object := found[w]
		became := at.Run(ctx, object, plan.Plan{Stages: []plan.Stage{{{{Verb: plan.Delete, Concern: plan.Tidy, Before: object}}}}})
		at.Forget(object)
		out.done = out.done && became.Err() == nil
	}
	for _, of := range stones.sorted() {
		left := slices.ContainsFunc(workloads, func(w member.Workload) bool { return w.Owner == of.owner && !known.Exists[of.owner] })
		if of.cluster == view.ID && !left && out.done {
			out.done = s.exhume(ctx, of) == nil
		}
	}
	return out
}

// leadingTo returns the places that lead to a cluster, and those of which it is not known where they lead.
func (s *Sweeper) leadingTo(cluster string) (out []member.Place) {
	for _, ref := range s.Registry.Known() {
		if id := s.Registry.Look(ref).ID; id == cluster || id == "" {
			out = append(out, placeOf(ref))
		}
	}
	return out
}

// found returns all workloads of the hub in a member.
func (s *Sweeper) found(ctx context.Context, in Link) (map[member.Workload]plan.Object, bool) {
	out := map[member.Workload]plan.Object{}
	for _, list := range s.Lists() {
		kind, err := apiutil.GVKForObject(list, s.Scheme)
		if err != nil {
			return nil, false
		}
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		served, readable := in.Serves(kind)
		if !served {
			continue
		}
		if !readable || in.Cached().List(ctx, list, client.MatchingLabels{keys.HubID: s.HubID}) != nil {
			return nil, false
		}
		if meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(plan.Object)
			namespace, name, _ := strings.Cut(o.GetAnnotations()[keys.HubOwner], "/")
			out[member.Workload{
				Kind: kind.String(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
				ResourceVersion: o.GetResourceVersion(), Owner: types.UID(o.GetLabels()[keys.HubOwnerUID]),
				OwnerName: types.NamespacedName{Namespace: namespace, Name: name},
			}] = o
			return nil
		}) != nil {
			return nil, false
		}
	}
	return out, true
}
