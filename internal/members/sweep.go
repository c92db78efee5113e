package members

import (
	"context"
	"fmt"
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
// did not answer. If that would be many, the hub may have been restored to an earlier state, and a person has to allow it.
type Sweeper struct {
	*Members
	// Wants reports whether an owner in the hub, as its API server has it, wants workloads in a cluster or deletes them itself.
	Wants func(ctx context.Context, place member.Place, w member.Workload) (bool, error)
	swept map[clusters.Ref]sweep
}

// sweep is when a member was last swept.
type sweep struct {
	session int
	at      time.Time
	// allowed is what a person allowed then.
	allowed string
}

// Start sweeps until the context ends.
func (s *Sweeper) Start(ctx context.Context) error {
	s.swept = map[clusters.Ref]sweep{}
	tick := time.NewTicker(sweepCheck)
	defer tick.Stop()
	for {
		s.sweepDue(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Sweeper) sweepDue(ctx context.Context) {
	stones, err := s.Tombstones.read(ctx)
	if err != nil {
		return // and ask the hub again
	}
	s.Registry.Want("tombstones", stones.refs()...)
	for _, ref := range s.Registry.Known() {
		view, last := s.Registry.Look(ref), s.swept[ref]
		unchanged := last.session == view.Session && last.allowed == view.Labels[keys.AllowSweep] && s.Now().Sub(last.at) < sweepEvery
		if !view.Ready() || unchanged && !stones.has(view.ID) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		if s.sweep(limited, ref, view, stones) {
			s.swept[ref] = sweep{view.Session, s.Now(), view.Labels[keys.AllowSweep]}
		}
		cancel()
	}
}

// sweep sweeps one member, and reports whether all was asked that had to be.
func (s *Sweeper) sweep(ctx context.Context, ref clusters.Ref, view clusters.View, stones tombstones) bool {
	found, ok := s.found(ctx, view)
	if !ok {
		return false
	}
	known := member.Known{Exists: map[types.UID]bool{}, Tombstone: map[types.UID]bool{}}
	known.Allowed, _ = strconv.Atoi(view.Labels[keys.AllowSweep]) // what can't be read allows nothing
	var workloads []member.Workload
	present := map[types.UID]bool{}
	for w := range found {
		wanted, err := s.Wants(ctx, placeOf(ref), w)
		if err != nil {
			return false
		}
		known.Exists[w.Owner] = known.Exists[w.Owner] || wanted
		known.Tombstone[w.Owner] = stones[stone{view.ID, w.Owner}] != "" && !wanted
		present[w.Owner] = true
		workloads = append(workloads, w)
	}
	remove, exceeded := member.Sweep(workloads, known)
	if exceeded > 0 {
		on := &corev1.ObjectReference{Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
		s.Events.Event(on, corev1.EventTypeWarning, eventThreshold, fmt.Sprintf("%d of %d workloads in the cluster belong to nobody: if the hub "+
			"was not restored to an earlier state, label this object %s=%d to have them deleted", exceeded, len(workloads), keys.AllowSweep, exceeded))
	}
	at := s.site(ref, view)
	for _, w := range remove {
		object := found[w]
		result := at.Run(ctx, object, plan.Plan{Stages: []plan.Stage{{{{Verb: plan.Delete, Concern: plan.Tidy, Before: object}}}}})
		at.Forget(object)
		ok = ok && result.Err() == nil
	}
	for of := range stones {
		if of.cluster == view.ID && !present[of.owner] && ok {
			ok = s.Tombstones.remove(ctx, of) == nil
		}
	}
	return ok
}

// found returns all workloads of the hub in a member.
func (s *Sweeper) found(ctx context.Context, view clusters.View) (map[member.Workload]plan.Object, bool) {
	out := map[member.Workload]plan.Object{}
	for _, list := range s.Lists() {
		kind, err := apiutil.GVKForObject(list, s.Scheme)
		if err != nil {
			return nil, false
		}
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		served, readable := view.Serves(kind)
		if !served {
			continue
		}
		if !readable || view.Cached().List(ctx, list, client.MatchingLabels{keys.HubID: s.HubID}) != nil {
			return nil, false
		}
		if meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(plan.Object)
			namespace, name, _ := strings.Cut(o.GetAnnotations()[keys.HubOwner], "/")
			out[member.Workload{
				Kind: kind.String(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
				Owner: types.UID(o.GetLabels()[keys.HubOwnerUID]), OwnerName: types.NamespacedName{Namespace: namespace, Name: name},
			}] = o
			return nil
		}) != nil {
			return nil, false
		}
	}
	return out, true
}
