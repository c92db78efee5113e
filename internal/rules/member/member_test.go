package member

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

func web() Identity {
	return Identity{HubID: "hub", Namespace: "shop", Name: "web", UID: "uid", Subset: "b"}
}

// TestNamesStayAsTheyAre: workloads in users' clusters have them.
func TestNamesStayAsTheyAre(t *testing.T) {
	long := web()
	long.Name = strings.Repeat("w", 70)
	dashed := web()
	dashed.Name = strings.Repeat("w", 52) + "-x"
	for name, tc := range map[string]struct {
		of   Identity
		want string
	}{
		"a short one":                    {web(), "web-b-a6917f72"},
		"a long one is cut":              {long, strings.Repeat("w", 54) + "-a6917f72"},
		"none has a dash where it's cut": {dashed, strings.Repeat("w", 52) + "-x-a6917f72"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.WorkloadName(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNamesAreValidAndEachIsAnother(t *testing.T) {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?`)
	names := map[string]Identity{}
	rapid.Check(t, func(t *rapid.T) {
		i := Identity{
			HubID: label.Draw(t, "hub"), Namespace: label.Draw(t, "namespace"), UID: types.UID(label.Draw(t, "uid")),
			Name: rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?){0,3}`).Draw(t, "name"), Subset: label.Draw(t, "subset"),
		}
		name := i.WorkloadName()
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name) > maxName {
			t.Fatalf("%q is no name: %v", name, wrong)
		}
		if other, taken := names[name]; taken && other != i {
			t.Fatalf("%+v and %+v are both called %s", i, other, name)
		}
		names[name] = i
	})
}

// TestNobodyElsesObjectIsOurs: by its name alone nothing is.
func TestNobodyElsesObjectIsOurs(t *testing.T) {
	i := web()
	for name, tc := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"ours":                {map[string]string{keys.HubID: "hub", keys.HubOwnerUID: "uid", "app": "web"}, true},
		"no labels":           {nil, false},
		"of another hub":      {map[string]string{keys.HubID: "other", keys.HubOwnerUID: "uid"}, false},
		"of an earlier owner": {map[string]string{keys.HubID: "hub", keys.HubOwnerUID: "before"}, false},
		"half of it":          {map[string]string{keys.HubOwnerUID: "uid"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := i.Owns(tc.labels); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if (Identity{}).Owns(nil) {
		t.Error("nobody owns everything")
	}
	if got := i.Labelled(map[string]string{keys.HubID: "forged"}); !i.Owns(got) {
		t.Errorf("labels of a template win: %v", got)
	}
}

func at(seconds int) time.Time { return time.Date(2030, 1, 1, 0, 0, seconds, 0, time.UTC) }

func well(id string) Seen { return Seen{Reason: connection.Connected, ID: id, LastContact: at(0)} }

func away(id string) Seen {
	return Seen{Reason: connection.Unreachable, Message: "no answer", ID: id, LastContact: at(0)}
}

func place(name string) Place { return Place{"Secret", "default", name} }

func record(name, id string, phase v1beta1.MemberClusterPhase) v1beta1.MemberCluster {
	return v1beta1.MemberCluster{Kind: "Secret", Namespace: "default", Name: name, ClusterID: id, Phase: phase, LastContactTime: &metav1.Time{Time: at(0)}}
}

func TestHowAClusterStands(t *testing.T) {
	known := record("c", "one", v1beta1.MemberClusterActive)
	gone := Seen{Reason: connection.NotFound, Message: "gone", ID: "one"}
	unselected := well("one")
	unselected.Unselected = true
	for name, tc := range map[string]struct {
		record *v1beta1.MemberCluster
		now    Seen
		want   connection.Reason
		writes bool
	}{
		"well, and recorded":             {&known, well("one"), connection.Connected, true},
		"well, and not recorded yet":     {nil, well("one"), connection.Connected, false},
		"away":                           {&known, away("one"), connection.Unreachable, false},
		"another cluster in its place":   {&known, well("two"), connection.IDChanged, false},
		"another cluster, and away":      {&known, away("two"), connection.IDChanged, false},
		"never reached, but recorded":    {&known, Seen{Reason: connection.Connecting}, connection.Connecting, false},
		"its object is gone":             {&known, gone, connection.NotFound, false},
		"its object has other labels":    {&known, unselected, connection.NotSelected, false},
		"recorded without its identity":  {&v1beta1.MemberCluster{Kind: "Secret", Namespace: "default", Name: "c"}, well("one"), connection.Connected, false},
		"the hub, that cannot be a copy": {nil, Seen{Reason: connection.TargetIsHub, ID: "hub"}, connection.TargetIsHub, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Judge(place("c"), tc.record, tc.now); got.Reason != tc.want {
				t.Errorf("it is %s: %s", got.Reason, got.Message)
			}
			if got := MayWrite(place("c"), tc.record, tc.now); got != tc.writes {
				t.Errorf("it may be written to: %t", got)
			}
		})
	}
}

func TestClustersAreRecordedUntilNothingIsLeftThere(t *testing.T) {
	const active, draining, lost = v1beta1.MemberClusterActive, v1beta1.MemberClusterDraining, v1beta1.MemberClusterLost
	silent := record("c", "one", lost)
	silent.Message = "no answer"
	frozen := record("c", "one", active)
	frozen.Message = "no answer"
	for name, tc := range map[string]struct {
		before []v1beta1.MemberCluster
		wanted []Place
		now    Seen
		left   Left
		want   []v1beta1.MemberCluster
	}{
		"a new one":                      {nil, []Place{place("c")}, well("one"), Unknown, []v1beta1.MemberCluster{record("c", "one", active)}},
		"a new one of two subsets":       {nil, []Place{place("c"), place("c")}, well("one"), Unknown, []v1beta1.MemberCluster{record("c", "one", active)}},
		"a new one that was not reached": {nil, []Place{place("c")}, away(""), Unknown, nil},
		"one that is away":               {[]v1beta1.MemberCluster{record("c", "one", active)}, []Place{place("c")}, away("one"), Unknown, []v1beta1.MemberCluster{frozen}},
		"one whose subset is gone":       {[]v1beta1.MemberCluster{record("c", "one", active)}, nil, well("one"), Something, []v1beta1.MemberCluster{record("c", "one", draining)}},
		"gone, and it does not answer":   {[]v1beta1.MemberCluster{record("c", "one", active)}, nil, away("one"), Unknown, []v1beta1.MemberCluster{silent}},
		"gone, and nothing is left":      {[]v1beta1.MemberCluster{record("c", "one", draining)}, nil, well("one"), Nothing, nil},
		"gone, and abandoned":            {[]v1beta1.MemberCluster{silent}, nil, away("one"), Abandoned, nil},
		"abandoned, and it is back":      {[]v1beta1.MemberCluster{record("c", "one", draining)}, nil, well("one"), Abandoned, []v1beta1.MemberCluster{record("c", "one", draining)}},
		"gone, and nobody asked it":      {[]v1beta1.MemberCluster{record("c", "one", draining)}, nil, well("one"), Unknown, []v1beta1.MemberCluster{record("c", "one", draining)}},
		"wanted again, while it drains":  {[]v1beta1.MemberCluster{record("c", "one", draining)}, []Place{place("c")}, well("one"), Something, []v1beta1.MemberCluster{record("c", "one", active)}},
		"one of two, sorted by their names": {
			[]v1beta1.MemberCluster{record("d", "two", active)}, []Place{place("c"), place("d")}, well("one"), Unknown,
			[]v1beta1.MemberCluster{record("c", "one", active), changed(record("d", "two", active))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Records(tc.before, tc.wanted, func(Place) Seen { return tc.now }, func(Place) Left { return tc.left })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("records differ (-want +got):\n%s", diff)
			}
		})
	}
}

// changed is the record of a cluster object that leads to the cluster "one" instead.
func changed(r v1beta1.MemberCluster) v1beta1.MemberCluster {
	r.Message = Judge(placeOf(&r), &r, well("one")).Message
	return r
}

// TestNoClusterIsForgotten: whatever happens, a cluster that may have been written to is recorded, with the identity that it had then, until it
// has said itself that nothing is left or was abandoned; and what has not changed is not written again.
func TestNoClusterIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stored []v1beta1.MemberCluster
		holds := map[Place]string{} // the cluster, by its identity, that was written to
		for step := range rapid.IntRange(1, 25).Draw(t, "steps") {
			var wanted []Place
			seen, left := map[Place]Seen{}, map[Place]Left{}
			for _, name := range []string{"a", "b", "c"} {
				p := place(name)
				if rapid.Bool().Draw(t, "wanted") {
					wanted = append(wanted, p)
				}
				id := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "id")
				seen[p] = well(id)
				if rapid.Bool().Draw(t, "away") {
					seen[p] = away(id)
				}
				left[p] = Unknown
				if r := Find(stored, p); r != nil && MayWrite(p, r, seen[p]) {
					left[p] = rapid.SampledFrom([]Left{Something, Nothing}).Draw(t, "left")
				}
			}
			look := func(p Place) Seen { return seen[p] }
			now := Records(stored, wanted, look, func(p Place) Left { return left[p] })
			if again := Records(now, wanted, look, func(p Place) Left { return left[p] }); !cmp.Equal(now, again) {
				t.Fatalf("step %d: it is never settled: %s", step, cmp.Diff(now, again))
			}
			for p, id := range holds {
				r := Find(now, p)
				if r == nil && left[p] != Nothing {
					t.Fatalf("step %d: %s is forgotten", step, p)
				}
				if r == nil {
					delete(holds, p)
				} else if r.ClusterID != id {
					t.Fatalf("step %d: %s held a workload in %s, and %s is recorded", step, p, id, r.ClusterID)
				}
			}
			stored = now
			for _, p := range wanted {
				if MayWrite(p, Find(stored, p), seen[p]) {
					if before, written := holds[p]; written && before != seen[p].ID {
						t.Fatalf("step %d: %s is written to in %s and in %s", step, p, before, seen[p].ID)
					}
					holds[p] = seen[p].ID
				}
			}
		}
	})
}

func TestOnlyWhatNobodyWantsIsSwept(t *testing.T) {
	workloads := func(n int) (out []Workload) {
		for i := range n {
			out = append(out, Workload{Name: fmt.Sprint("w", i), Owner: types.UID(fmt.Sprint("owner-", i))})
		}
		return out
	}
	for name, tc := range map[string]struct {
		found, lost, buried int // how many there are, how many owners are gone, how many workloads have tombstones besides
		removed, exceeded   int
		allowed             int
	}{
		"all are wanted":            {found: 10},
		"one is not":                {found: 10, lost: 1, removed: 1},
		"one has a tombstone":       {found: 10, buried: 1, removed: 1},
		"five of ten":               {found: 10, lost: 3, buried: 2, removed: 5},
		"six of ten":                {found: 10, lost: 6, exceeded: 6},
		"ten of ten, of a restored": {found: 10, lost: 10, exceeded: 10},
		"ten of ten, by a person":   {found: 10, lost: 10, allowed: 10, removed: 10},
		"five of five":              {found: 5, lost: 5, removed: 5},
		"a fifth of many":           {found: 100, lost: 20, removed: 20},
		"more than a fifth of many": {found: 100, lost: 21, exceeded: 21},
	} {
		t.Run(name, func(t *testing.T) {
			all := workloads(tc.found)
			known := Known{Exists: map[types.UID]bool{}, Tombstone: map[types.UID]bool{}, Allowed: tc.allowed}
			for i, w := range all {
				known.Exists[w.Owner] = i >= tc.lost
				known.Tombstone[w.Owner] = i >= tc.lost && i < tc.lost+tc.buried
			}
			remove, exceeded := Sweep(all, known)
			if len(remove) != tc.removed || exceeded != tc.exceeded {
				t.Errorf("%d are removed, %d exceed the limit; want %d, %d", len(remove), exceeded, tc.removed, tc.exceeded)
			}
		})
	}
}
