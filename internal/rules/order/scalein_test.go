package order

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// ready returns a Pod that has been ready on the node since Start.
func ready(name, node string) *build.PodBuilder {
	return build.Pod(name).Node(node).Ready(build.Start())
}

func objects(builders ...*build.PodBuilder) []*corev1.Pod {
	var out []*corev1.Pod
	for _, b := range builders {
		out = append(out, b.Obj())
	}
	return out
}

func TestWhoIsDeletedFirst(t *testing.T) {
	cost := func(b *build.PodBuilder, cost string) *build.PodBuilder {
		return b.Annotation(corev1.PodDeletionCost, cost)
	}
	cases := map[string]struct {
		first, second *build.PodBuilder
		more          []*build.PodBuilder // others, that are there but no candidates
	}{
		"no node before a node, whatever it costs":            {first: cost(build.Pod("z"), "100"), second: build.Pod("a").Node("n1")},
		"pending before unknown":                              {first: build.Pod("z").Node("n1"), second: build.Pod("a").Node("n2").Phase(corev1.PodUnknown)},
		"unknown before running":                              {first: build.Pod("z").Node("n1").Phase(corev1.PodUnknown), second: build.Pod("a").Node("n2").NotReady()},
		"not ready before ready, whatever it costs":           {first: cost(build.Pod("z").Node("n1").NotReady(), "100"), second: ready("a", "n2")},
		"not ready before ready but not yet available":        {first: build.Pod("z").Node("n1").NotReady(), second: build.Pod("a").Node("n2").Ready(build.After(95))},
		"not yet available before available, though it costs": {first: cost(build.Pod("z").Node("n1").Ready(build.After(95)), "9"), second: ready("a", "n2")},
		"not in the state Normal counts as not available":     {first: ready("z", "n1").State(pub.LifecycleStateUpdated), second: ready("a", "n2")},
		"cheap before dear":                                   {first: ready("z", "n1"), second: cost(ready("a", "n2"), "1")},
		"a cost below none":                                   {first: cost(ready("z", "n1"), "-1"), second: ready("a", "n2")},
		"the cost before crowding": {
			first: ready("z", "n1"), second: cost(ready("a", "n2"), "100"), more: []*build.PodBuilder{ready("x", "n2"), ready("y", "n2")},
		},
		"crowded before alone": {
			first: ready("z", "n2"), second: ready("a", "n1").Restarts(5), more: []*build.PodBuilder{ready("x", "n2").Created(build.After(-1))},
		},
		"ready for a shorter time first": {first: ready("z", "n1").Ready(build.After(5)), second: ready("a", "n2")},
		"more restarts first":            {first: ready("z", "n1").Restarts(0, 3), second: ready("a", "n2").Restarts(2, 2)},
		"the younger first":              {first: ready("z", "n1").Created(build.After(1)), second: ready("a", "n2")},
		"at last the name":               {first: ready("a", "n1"), second: ready("z", "n2")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			candidates := objects(tc.second, tc.first)
			all := append(objects(tc.more...), candidates...)
			got := build.Names(ScaleIn(candidates, all, ScaleInOptions{Now: build.After(100), MinReadySeconds: 10}))
			if diff := cmp.Diff([]string{tc.first.Obj().Name, tc.second.Obj().Name}, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeletionCost(t *testing.T) {
	for text, want := range map[string]int32{
		"": 0, "0": 0, "100": 100, "-100": -100, "+100": 0, "0100": 0, "00": 0, "1.5": 0, "1e3": 0, " 1": 0, "x": 0, "-": 0,
		"2147483647": 2147483647, "2147483648": 0, "-2147483648": -2147483648, "-05": -5,
	} {
		t.Run(text, func(t *testing.T) {
			if got := deletionCost(build.Pod("a").Annotation(corev1.PodDeletionCost, text).Obj()); got != want {
				t.Errorf("cost is %d, want %d", got, want)
			}
		})
	}
	if got := deletionCost(&corev1.Pod{}); got != 0 {
		t.Errorf("without annotations the cost is %d, want 0", got)
	}
}

// sixPods are on three nodes: a has 2, b has 1, c has 3.
func sixPods() []*build.PodBuilder {
	return []*build.PodBuilder{
		ready("a1", "node-a"), ready("a2", "node-a"), ready("b1", "node-b"), ready("c1", "node-c"), ready("c2", "node-c"), ready("c3", "node-c"),
	}
}

func TestCrowdedNodesGiveFirst(t *testing.T) {
	all := objects(sixPods()...)
	got := build.Names(ScaleIn(all, all, ScaleInOptions{Now: build.After(100)}))
	if diff := cmp.Diff([]string{"c1", "a1", "c2", "a2", "b1", "c3"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}

	builders := sixPods()
	for _, b := range builders[3:] {
		b.Annotation(corev1.PodDeletionCost, "100")
	}
	dear := objects(builders...)
	got = build.Names(ScaleIn(dear, dear, ScaleInOptions{Now: build.After(100)}))
	if diff := cmp.Diff([]string{"a1", "a2", "b1", "c1", "c2", "c3"}, got); diff != "" {
		t.Errorf("order when those of node-c cost 100 (-want +got):\n%s", diff)
	}
}

func TestConstraintsSpreadOverTheirDomains(t *testing.T) {
	nodes := map[string]map[string]string{
		"node-1": {"zone": "x", corev1.LabelHostname: "node-1"},
		"node-2": {"zone": "x", corev1.LabelHostname: "node-2"},
		"node-3": {"zone": "y", corev1.LabelHostname: "node-3"},
		"node-4": {corev1.LabelHostname: "node-4"},
	}
	constraint := func(keys ...string) []corev1.TopologySpreadConstraint {
		var out []corev1.TopologySpreadConstraint
		for _, key := range keys {
			out = append(out, corev1.TopologySpreadConstraint{TopologyKey: key})
		}
		return out
	}
	cases := map[string]struct {
		pods        []*build.PodBuilder
		constraints []corev1.TopologySpreadConstraint
		want        []string
	}{
		// Zone x: p1 3, p2 2, p3 1; zone y: p4 2, p5 1; times ln 4 each.
		"the zone with the most gives first": {
			[]*build.PodBuilder{ready("p1", "node-1"), ready("p2", "node-1"), ready("p3", "node-2"), ready("p4", "node-3"), ready("p5", "node-3")},
			constraint("zone"),
			[]string{"p1", "p2", "p4", "p3", "p5"},
		},
		// In zone x node-2 has two: its p2 goes first, and p1 and p3 follow by name.
		"inside a zone the crowded node gives first": {
			[]*build.PodBuilder{ready("p1", "node-1"), ready("p2", "node-2"), ready("p3", "node-2")},
			constraint("zone"),
			[]string{"p2", "p1", "p3"},
		},
		// Without the rank of the node: all alike but for the names.
		"the host name is the node itself": {
			[]*build.PodBuilder{ready("p1", "node-1"), ready("p2", "node-2"), ready("p3", "node-2")},
			constraint(corev1.LabelHostname),
			[]string{"p2", "p1", "p3"},
		},
		// Both in one: zone x p2 3, p1 2, p3 1, zone y p4 1, times ln 4; hosts p2 2, the others 1, times ln 5.
		"constraints add up": {
			[]*build.PodBuilder{ready("p1", "node-1"), ready("p2", "node-2"), ready("p3", "node-2"), ready("p4", "node-3")},
			constraint("zone", corev1.LabelHostname),
			[]string{"p2", "p1", "p3", "p4"},
		},
		"a node without the key, or that is not known, is left alone": {
			[]*build.PodBuilder{ready("p1", "node-4"), ready("p2", "node-5"), ready("p3", "node-3"), ready("p4", "node-3")},
			constraint("zone"),
			[]string{"p3", "p4", "p1", "p2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(tc.pods...)
			got := build.Names(ScaleIn(all, all, ScaleInOptions{
				Now: build.After(100), Constraints: tc.constraints,
				NodeLabels: func(node string) map[string]string { return nodes[node] },
			}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutNodesConstraintsSayNothing(t *testing.T) {
	all := objects(sixPods()...)
	got := build.Names(ScaleIn(all, all, ScaleInOptions{Now: build.After(100), Constraints: []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}}))
	if diff := cmp.Diff([]string{"a1", "a2", "b1", "c1", "c2", "c3"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestScaleInOfAnyPods(t *testing.T) {
	nodes := map[string]map[string]string{"n1": {"zone": "x"}, "n2": {"zone": "x"}, "n3": {"zone": "y"}}
	rapid.Check(t, func(t *rapid.T) {
		all := build.AnyPods(16).Draw(t, "pods")
		candidates := slices.DeleteFunc(slices.Clone(all), func(*corev1.Pod) bool { return rapid.IntRange(0, 3).Draw(t, "left out") == 0 })
		f := ScaleInOptions{
			Now: build.After(100), MinReadySeconds: rapid.Int32Range(0, 200).Draw(t, "minReadySeconds"),
			NodeLabels: func(node string) map[string]string { return nodes[node] },
		}
		if rapid.Bool().Draw(t, "constrained") {
			f.Constraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}, {TopologyKey: corev1.LabelHostname}}
		}
		before, text := slices.Clone(candidates), describe(t, all)
		ranked := ScaleIn(candidates, all, f)
		if !slices.Equal(before, candidates) || text != describe(t, all) {
			t.Fatal("ScaleIn has changed its input")
		}
		got, want := build.Names(ranked), build.Names(candidates)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("Pods that were put in and got out (-in +out):\n%s", diff)
		}
		slices.Reverse(candidates)
		shuffled := rapid.Permutation(all).Draw(t, "all in another order")
		if diff := cmp.Diff(build.Names(ranked), build.Names(ScaleIn(candidates, shuffled, f))); diff != "" {
			t.Fatalf("the order depends on that of the input (-first +second):\n%s", diff)
		}
		for i := 1; i < len(ranked); i++ {
			if f.readiness(ranked[i-1]) > f.readiness(ranked[i]) && ranked[i-1].Spec.NodeName != "" && ranked[i-1].Status.Phase == ranked[i].Status.Phase {
				t.Fatalf("%s serves more than %s and goes before it", ranked[i-1].Name, ranked[i].Name)
			}
		}
	})
}
