package nodeupdate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// nodes reads nodes in their order of update, such as "n9 old, n8 old*, n7 new/young": a state is that of the side named before it and
// available unless it says otherwise, and a star is a node that the selector matches.
func nodes(text string) []Node {
	states := map[string]State{"": Available, "young": Young, "notready": NotReady}
	var out []Node
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Fields(part)
		n := Node{Name: fields[0]}
		for _, field := range fields[1:] {
			word, star := strings.CutSuffix(field, "*")
			n.Selected = n.Selected || star
			side, state, _ := strings.Cut(word, "/")
			switch side {
			case "old":
				n.Old = states[state]
			case "new":
				n.New = states[state]
			case "excess":
				n.Excess = true
			case "held":
				n.Held = true
			}
		}
		out = append(out, n)
	}
	return out
}

func names(nodes []Node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return strings.Join(out, " ")
}

func TestReach(t *testing.T) {
	const ten = "n9 old, n8 old*, n7 old, n6 old, n5 old, n4 old*, n3 old, n2 old, n1 old*, n0 old"
	for name, tc := range map[string]struct {
		nodes  string
		limits Limits
		want   string
	}{
		"all":                               {"n1 old, n0 old", Limits{}, "n1 n0"},
		"the last ones by a partition":      {ten, Limits{Partition: 7}, "n9 n8 n7"},
		"a partition of more than all":      {ten, Limits{Partition: 11}, ""},
		"selected ones":                     {ten, Limits{BySelector: true}, "n8 n4 n1"},
		"selected ones within a partition":  {ten, Limits{BySelector: true, Partition: 8}, "n8 n4"},
		"updated ones come first":           {"n3 old, n2, n1 new, n0 old", Limits{Partition: 2}, "n1 n2"},
		"updated ones are never exchanged":  {"n3 old*, n2 old, n1 new, n0 old", Limits{Partition: 3, BySelector: true}, "n1"},
		"a node to clean up counts as done": {"n1 old, n0 old excess", Limits{Partition: 1}, "n0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(Reach(nodes(tc.nodes), tc.limits)); got != tc.want {
				t.Errorf("Reach() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  string
		limits Limits
		want   Step
	}{
		"two at a time": {"n3 old, n2 old, n1 old, n0 old", Limits{MaxUnavailable: 2}, Step{Take: []string{"n3", "n2"}, Wait: []string{"n1", "n0"}, Used: 2}},
		"a new Pod that is not available uses the limit": {
			"n2 new/young, n1 old, n0 old", Limits{MaxUnavailable: 1}, Step{Wait: []string{"n1", "n0"}, Used: 1},
		},
		"a node without a Pod does, too": {"n2, n1 old, n0 old", Limits{MaxUnavailable: 1}, Step{Wait: []string{"n1", "n0"}, Used: 1}},
		"broken ones are free and use the limit up": {
			"n4 old, n3 old/notready, n2 old/notready, n1 old/notready, n0 old", Limits{MaxUnavailable: 2},
			Step{Take: []string{"n3", "n2", "n1"}, Wait: []string{"n4", "n0"}, Used: 3},
		},
		"broken ones beyond the partition show all the same": {
			"n2 old, n1 old, n0 old/notready", Limits{MaxUnavailable: 1, Partition: 1}, Step{Wait: []string{"n2", "n1"}, Used: 1},
		},
		"a young one may go in its own place": {
			"n2 old/young, n1 old, n0 old", Limits{MaxUnavailable: 1}, Step{Take: []string{"n2"}, Wait: []string{"n1", "n0"}, Used: 1},
		},
		"young ones do not all go at once": {
			"n2 old/young, n1 old/young, n0 old/young", Limits{MaxUnavailable: 1}, Step{Take: []string{"n2"}, Wait: []string{"n1", "n0"}, Used: 3},
		},
		"a node with two Pods waits": {"n1 old new, n0 old", Limits{MaxUnavailable: 1}, Step{Take: []string{"n0"}, Used: 1}},
		"a node with Pods in excess": {"n1 old excess, n0 old", Limits{MaxUnavailable: 1}, Step{Wait: []string{"n0"}, Used: 1}},
		"nothing to do":              {"n1 new, n0 new", Limits{MaxUnavailable: 1}, Step{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Replace(nodes(tc.nodes), tc.limits)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSurge(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  string
		limits Limits
		want   Step
	}{
		"one at a time":                          {"n2 old, n1 old, n0 old", Limits{MaxSurge: 1}, Step{Take: []string{"n2"}, Wait: []string{"n1", "n0"}, Used: 1}},
		"a pair uses the limit":                  {"n2 old new/young, n1 old, n0 old", Limits{MaxSurge: 1}, Step{Wait: []string{"n1", "n0"}, Used: 1}},
		"a broken one gets help at once":         {"n2 old new, n1 old, n0 old/notready", Limits{MaxSurge: 1}, Step{Take: []string{"n0"}, Wait: []string{"n1"}, Used: 2}},
		"young ones do not all go at once":       {"n1 old/young, n0 old/young", Limits{MaxSurge: 1}, Step{Take: []string{"n1"}, Wait: []string{"n0"}, Used: 1}},
		"a Pod that a hook holds uses the limit": {"n1 new held, n0 old", Limits{MaxSurge: 1}, Step{Wait: []string{"n0"}, Used: 1}},
		"nodes beyond the partition wait":        {"n1 old, n0 old/notready", Limits{MaxSurge: 2, Partition: 1}, Step{Take: []string{"n1"}, Used: 1}},
		"a node without a Pod is not asked":      {"n1, n0 old", Limits{MaxSurge: 1}, Step{Take: []string{"n0"}, Used: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Surge(nodes(tc.nodes), tc.limits)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	places := func(have string) []Place {
		var out []Place
		for i, c := range have {
			out = append(out, Place{Name: fmt.Sprintf("n%d", i), HasPod: c == 'x'})
		}
		return out
	}
	for name, tc := range map[string]struct {
		have     string
		progress Progress
		want     Creation
	}{
		"the first ones": {"....", Progress{Partition: 2}, Creation{Update: []string{"n0", "n1"}, Wait: []string{"n2", "n3"}}},
		"further ones":   {"xx..", Progress{Partition: 1, Updated: 2, Known: 2}, Creation{Update: []string{"n2"}, Wait: []string{"n3"}}},
		"all":            {"xx..", Progress{Updated: 2, Known: 2}, Creation{Update: []string{"n2", "n3"}}},
		"one that lost its old Pod in the middle":             {"xx.x", Progress{Partition: 3, Updated: 1, Known: 3}, Creation{Old: []string{"n2"}}},
		"one that lost its old Pod at the end":                {"xxx.", Progress{Partition: 4, Known: 4}, Creation{Old: []string{"n3"}}},
		"one that lost its new Pod":                           {".x..", Progress{Partition: 2, Updated: 1, Known: 2}, Creation{Update: []string{"n0"}, Wait: []string{"n2", "n3"}}},
		"one that lost its new and one that lost its old Pod": {"x.xx.", Progress{Partition: 4, Known: 5}, Creation{Update: []string{"n4"}, Old: []string{"n1"}}},
		"a partition of more than all":                        {"....", Progress{Partition: 9}, Creation{Wait: []string{"n0", "n1", "n2", "n3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Create(places(tc.have), tc.progress), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSteps draws nodes and limits: whatever they are, a step keeps the two inequalities, takes only nodes that may be touched, and never stops
// where the limit has room.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Node {
			return Node{
				Selected: rapid.Bool().Draw(t, "selected"), Excess: rapid.IntRange(0, 9).Draw(t, "excess") == 0,
				Old: State(rapid.IntRange(0, 3).Draw(t, "old")), New: State(rapid.IntRange(0, 3).Draw(t, "new")),
			}
		}), 0, 12).Draw(t, "nodes")
		for i := range fleet {
			fleet[i].Name = fmt.Sprintf("n%02d", len(fleet)-i)
		}
		l := Limits{
			Partition: rapid.IntRange(0, 13).Draw(t, "partition"), BySelector: rapid.Bool().Draw(t, "by selector"),
			MaxUnavailable: rapid.IntRange(1, 12).Draw(t, "maxUnavailable"), MaxSurge: rapid.IntRange(1, 12).Draw(t, "maxSurge"),
		}
		reach := Reach(fleet, l)
		if most := max(len(fleet)-l.Partition, 0); len(reach) > most {
			t.Fatalf("%d nodes are reach, want %d at most", len(reach), most)
		}
		replace, surge := Replace(fleet, l), Surge(fleet, l)
		unavailable, notReady, pairs := 0, 0, 0
		moved, restless, free := false, 0, 0
		for _, n := range fleet {
			taken := slices.Contains(replace.Take, n.Name)
			if taken != slices.ContainsFunc(reach, func(k Node) bool { return k.Name == n.Name }) && taken {
				t.Fatalf("%s is taken and not reach", n.Name)
			}
			if n.serves() < Available || taken {
				unavailable++
			}
			if n.serves() < Young || taken {
				notReady++
			}
			if n.serves() < Available {
				restless++
			}
			if taken && n.Old >= Young {
				moved = true
			}
			if n.Old != Absent && n.New != Absent || n.Excess || slices.Contains(surge.Take, n.Name) {
				pairs++
			}
			if slices.Contains(surge.Take, n.Name) && n.Old == NotReady {
				free++
			}
		}
		if moved && notReady > l.MaxUnavailable {
			t.Fatalf("%d nodes are without a ready Pod, want %d at most", notReady, l.MaxUnavailable)
		}
		if unavailable > max(l.MaxUnavailable, restless) {
			t.Fatalf("%d nodes are without an available Pod, %d were before, want %d at most", unavailable, restless, l.MaxUnavailable)
		}
		if len(surge.Take) > free && pairs > l.MaxSurge {
			t.Fatalf("%d nodes run two Pods, want %d at most", pairs, l.MaxSurge)
		}
		if len(replace.Wait) > 0 && unavailable < l.MaxUnavailable {
			t.Fatalf("%v wait although %d of %d are unavailable", replace.Wait, unavailable, l.MaxUnavailable)
		}
		if len(surge.Wait) > 0 && pairs < l.MaxSurge {
			t.Fatalf("%v wait although %d of %d run two Pods", surge.Wait, pairs, l.MaxSurge)
		}
	})
}
