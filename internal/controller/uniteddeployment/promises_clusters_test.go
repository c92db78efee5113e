package uniteddeployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/members"
	"github.com/seed-69ecc383/kruise/internal/plan"
	memberrules "github.com/seed-69ecc383/kruise/internal/rules/member"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules for what is in other clusters.
const (
	ruleRecorded = "a cluster is recorded before it is written to"
	ruleSame     = "no cluster is written to that has taken the place of another"
	ruleNoOwner  = "nothing has an owner in another cluster"
	ruleWanted   = "nothing is swept that is wanted"
	ruleOthers   = "nothing is touched that the hub has not made"
)

// TestPromisesOverClusters runs the controller in simulated clusters, with other clusters that come and go, are replaced by others of
// their names and go back in time, and whose caches lag behind and writes get lost.
func TestPromisesOverClusters(t *testing.T) { suiteOver(mistakes{}).Hold(t) }

// TestWhatBrokeOnceHoldsOverClusters lets clusters live again in which a manager that started told of a wave that was done, in which a
// status that arrived late took back that a cluster was recorded, and in which a cluster that was abandoned was forgotten although it
// answered again and was being written to, in which nobody asked a cluster again that was to be cleaned up, and in which more was left
// behind than one sweep deletes unasked.
func TestWhatBrokeOnceHoldsOverClusters(t *testing.T) {
	suiteOver(mistakes{}).Again(t, 76, 2196, 6647, 107497, 7000124, 7001408)
}

// TestRunsOverClustersRepeat checks that a failure could be repeated.
func TestRunsOverClustersRepeat(t *testing.T) { suiteOver(mistakes{}).Repeat(t) }

// mistakes are made on purpose.
type mistakes struct {
	plan func(*State)
	// wants says what a sweeper believes to be wanted in place of what is.
	wants func(honest wants) wants
	// trusts has caches of other clusters count as new, whatever was written.
	trusts bool
	// forgetful has nothing swept.
	forgetful bool
}

// wants reports whether a workload in another cluster is wanted.
type wants = func(context.Context, memberrules.Workload, members.Cluster) (bool, error)

// suiteOver is the controller, with mistakes, in clusters with one UnitedDeployment.
func suiteOver(m mistakes) promises.Suite {
	out := suite(Plan)
	out.Populate = func(w *promises.World) promises.Scenario {
		s := newOverClusters(w, m)
		planner := promises.Planner[Snapshot, State]{Take: taken, Snapshot: func(v State) Snapshot { return v.Snapshot }, Plan: func(v State) plan.Plan {
			if m.plan != nil {
				m.plan(&v)
			}
			return Plan(v)
		}}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind(Options{Clusters: s.start(c), HubID: hubID})
				k.Plan = planner.In(w)
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Check: check, Converged: s.converged, Restarted: s.restarted,
			Others: []func() bool{s.run, s.run, s.run, s.task, s.task, s.connect, s.deliver, s.deliver, s.elsewhere, s.elsewhere, s.sweep, s.land},
		}
	}
	return out
}

const hubID = "hub"

// overClusters is a user with one UnitedDeployment, whose subsets are in several clusters.
type overClusters struct {
	*scenario
	mistakes
	world *promises.World
	// names are the names that the hub has for other clusters, and what they lead to.
	names map[string]*remote
	// remotes are all other clusters that there are.
	remotes []*remote
	// targets are the clusters that subsets are in, by the name of the subset.
	targets map[string]string
	// calm is when nobody does anything any more, and rested when all is done.
	calm, rested bool
	broken       []string
	// What follows ends with the controller.
	*registry
	sweeper *members.Sweeper
	tasks   []func()
	// sweeping means that what is written is swept.
	sweeping bool
}

func newOverClusters(w *promises.World, m mistakes) *overClusters {
	s := &overClusters{scenario: newScenario(w), mistakes: m, world: w, names: map[string]*remote{}, targets: map[string]string{}}
	for _, name := range []string{"m1", "m2"} {
		s.names[name] = s.newRemote()
	}
	if s.Chance(30) {
		s.names["m3"] = s.names["m1"] // two names for one cluster
	} else {
		s.names["m3"] = s.newRemote()
	}
	for _, subset := range []string{"a", "b", "c"} {
		if s.Chance(70) {
			s.targets[subset] = fmt.Sprint("m", 1+s.Rand.Intn(3))
		}
	}
	s.place = func(set *v1beta1.UnitedDeployment) {
		set.Spec.Topology.ClusterRegistry = &v1beta1.ClusterRegistry{UnreachablePolicy: v1beta1.FreezeUnreachable}
		if set.Spec.Topology.ScheduleStrategy.Type == v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType && s.Chance(50) {
			set.Spec.Topology.ClusterRegistry.UnreachablePolicy = v1beta1.ReallocateUnreachable
		}
		for i := range set.Spec.Topology.Subsets {
			subset := &set.Spec.Topology.Subsets[i]
			if target := s.targets[subset.Name]; target != "" {
				subset.TargetCluster = &v1beta1.ClusterReference{Name: target}
			}
		}
	}
	s.create()
	return s
}

// act does something that a user might do at any moment, or has something happen to a cluster.
func (s *overClusters) act() {
	name := fmt.Sprint("m", 1+s.Rand.Intn(3))
	at := s.names[name]
	switch n := s.Rand.Intn(100); {
	case n < 10:
		at.up = false
	case n < 22:
		at.up = true
	case n < 26:
		at.saved = at.Cluster.Save()
	case n < 30 && at.saved != nil:
		at.Cluster.Restore(at.saved)
		at.epoch++
	case n < 32:
		s.names[name] = s.newRemote()
	case n < 36:
		s.lead(name)
	case n < 38 && s.set() != nil:
		s.abandon("default/" + name)
	case n < 43 && s.set() != nil: // a cluster is let go for good
		at.up = false
		s.abandon("default/m1,default/m2,default/m3")
		s.Cluster.Delete(promises.UserActor, s.set())
	case n < 46:
		if found := at.workloads(); len(found) > 0 {
			at.meddle(found[s.Rand.Intn(len(found))])
		}
	case n < 49:
		if found := at.workloads(); len(found) > 0 {
			at.Cluster.Delete(promises.UserActor, found[s.Rand.Intn(len(found))])
		}
	default:
		s.scenario.act()
	}
}

// abandon has the UnitedDeployment leave behind what it has in clusters that do not answer.
func (s *overClusters) abandon(names string) {
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.UnitedDeployment) {
		set.Annotations = with(set.Annotations, map[string]string{keys.AbandonClusters: names})
	})
}

// lead has a name lead again to the cluster that is recorded for it.
func (s *overClusters) lead(name string) {
	set := s.set()
	if set == nil {
		return
	}
	if r := memberrules.Find(set.Status.MemberClusters, placeNamed(name)); r != nil {
		if i := slices.IndexFunc(s.remotes, func(at *remote) bool { return at.id == r.ClusterID }); i >= 0 {
			s.names[name] = s.remotes[i]
		}
	}
}

// leadAll has all names lead again to the clusters that are recorded for them.
func (s *overClusters) leadAll() {
	for _, name := range []string{"m1", "m2", "m3"} {
		s.lead(name)
	}
}

// relent has all clusters answer that there are, by the names that they had.
func (s *overClusters) relent() {
	s.calm = true
	for _, at := range s.remotes {
		at.up = true
		for _, c := range at.clients {
			c.SetFaults(simulate.Faults{})
		}
	}
	s.leadAll()
	s.scenario.relent()
}

// converged returns what is not as the user wants it, now that all clusters are at rest.
func (s *overClusters) converged() []string {
	// What landed late and nobody knows of is found by the sweep that comes every ten minutes.
	s.Cluster.Sleep(11 * time.Minute)
	s.sweepAll()
	s.allowSweeps()
	s.sweepAll()
	out := slices.Clone(s.broken)
	set := s.set()
	wanted := map[*remote][]string{}
	if set != nil {
		out = append(out, s.scenario.converged(func(subset *v1beta1.Subset) []plan.Object {
			if subset.TargetCluster == nil {
				return s.workloads()
			}
			at := s.names[subset.TargetCluster.Name]
			wanted[at] = append(wanted[at], subset.Name)
			return at.of(set)
		})...)
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.UnitedDeploymentClustersReady && c.Status != corev1.ConditionTrue && len(wanted) > 0 {
				out = append(out, fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Message))
			}
		}
	}
	for _, name := range []string{"m1", "m2", "m3"} {
		at := s.names[name]
		if n := len(at.workloads()); s.isWatched(name) && n != len(wanted[at]) {
			out = append(out, fmt.Sprintf("%s has %d workloads of the hub, want %d", name, n, len(wanted[at])))
		}
		for _, stone := range s.stones() {
			if id, place, _ := strings.Cut(stone, " "); id == at.id && place == placeNamed(name).Key() {
				out = append(out, "there is still a tombstone for "+name)
			}
		}
		if at.Cluster.Get(at.Cluster.KeyOf(at.foreign)) == nil {
			out = append(out, ruleOthers+": the Deployment of somebody else is gone from "+name)
		}
	}
	s.rested, s.broken = true, nil
	return out
}

// sweepAll sweeps as often as it takes.
func (s *overClusters) sweepAll() {
	for range 50 {
		s.sweep()
		for s.deliver() || s.task() || s.elsewhere() {
		}
	}
}

// allowSweeps has a person allow what is left if that may be more than one sweep deletes unasked.
func (s *overClusters) allowSweeps() {
	for _, ref := range s.Known() {
		if n := len(s.names[ref.Name].workloads()); n > memberrules.SweepLimit(n) {
			view := s.Look(ref)
			view.Labels = map[string]string{keys.AllowSweep: strconv.Itoa(n)}
			s.views[ref] = view
		}
	}
}

// restarted returns what the controller has written in other clusters after a restart.
func (s *overClusters) restarted() []string { return s.broken }

// TestMistakesOverClustersShow has the controller make mistakes on purpose: the checks of TestPromisesOverClusters must see each of them.
func TestMistakesOverClustersShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistakes
		want string
	}{
		"it writes before the cluster is recorded": {mistakes{plan: func(v *State) {
			v.Set = v.Set.DeepCopy()
			v.Set.Finalizers = append(v.Set.Finalizers, keys.MulticlusterCleanup)
			v.Set.Status.MemberClusters = v.records
		}}, ruleRecorded},
		"it leaves what subsets had that are gone": {mistakes{plan: func(v *State) {
			v.surplus = slices.DeleteFunc(slices.Clone(v.surplus), func(m *member) bool { return m.Cluster != "" })
		}}, "workloads of the hub"},
		"it forgets clusters that no subset is in": {mistakes{plan: func(v *State) {
			v.Set = v.Set.DeepCopy()
			v.Set.Status.MemberClusters, v.surplus = nil, nil
		}, forgetful: true}, "workloads of the hub"},
		"the sweeper takes everything for wanted": {mistakes{wants: func(wants) wants {
			return func(context.Context, memberrules.Workload, members.Cluster) (bool, error) { return true, nil }
		}}, "workloads of the hub"},
		"the sweeper goes by the name of the cluster": {mistakes{wants: byOneName}, ruleWanted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suiteOver(tc.mistakes).Break(t, tc.want)
		})
	}
}

// byOneName has the sweeper believe only in one of the names that lead to a cluster.
func byOneName(honest wants) wants {
	return func(ctx context.Context, w memberrules.Workload, in members.Cluster) (bool, error) {
		return honest(ctx, w, members.Cluster{Places: in.Places[:1]})
	}
}
