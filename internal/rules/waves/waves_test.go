package waves

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOrder(t *testing.T) {
	waves := []Wave{{Name: "canary", Subsets: []string{"a"}, Pause: true}, {Name: "half", Subsets: []string{"c", "b"}, Pause: true}}
	subsets := func(done string) (out []Progress) {
		for _, name := range []string{"a", "b", "c", "d"} {
			p := Progress{Name: name}
			for _, letter := range done {
				p.Done = p.Done || string(letter) == name
				p.Away = p.Away || "no-"+name == "no-"+string(letter+('a'-'A')) // a capital letter
			}
			out = append(out, p)
		}
		return out
	}
	open := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, name := range names {
			out[name] = true
		}
		return out
	}
	for name, tc := range map[string]struct {
		done, continued string
		want            Stage
	}{
		"the first alone":               {"", "", Stage{Wave: "canary", Open: open("a"), Waiting: []string{"a"}}},
		"it pauses when it is done":     {"a", "", Stage{Wave: "canary", Open: open("a"), Paused: true}},
		"an unknown wave ends no pause": {"a", "other", Stage{Wave: "canary", Open: open("a"), Paused: true}},
		"the second when continued":     {"a", "canary", Stage{Wave: "half", Open: open("a", "b", "c"), Waiting: []string{"b", "c"}}},
		"one of the second is not done": {"ab", "canary", Stage{Wave: "half", Open: open("a", "b", "c"), Waiting: []string{"c"}}},
		"the second pauses too":         {"abc", "canary", Stage{Wave: "half", Open: open("a", "b", "c"), Paused: true}},
		"the rest comes last":           {"abc", "half", Stage{Open: open("a", "b", "c", "d")}},
		"a later pause ends the ones before it": {
			"a", "half", Stage{Wave: "half", Open: open("a", "b", "c"), Waiting: []string{"b", "c"}},
		},
		"a pause ahead does not pass over what is not done": {"", "half", Stage{Wave: "canary", Open: open("a"), Waiting: []string{"a"}}},
		"nothing pauses when nothing is left":               {"abcd", "", Stage{Open: open("a", "b", "c", "d")}},
		"one that went back begins again":                   {"bcd", "half", Stage{Wave: "canary", Open: open("a"), Waiting: []string{"a"}}},
		"nobody waits for one that is away":                 {"A", "canary", Stage{Wave: "half", Open: open("a", "b", "c"), Waiting: []string{"b", "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Order(waves, subsets(tc.done), tc.continued)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestShare(t *testing.T) {
	rest := func(wanted, own int32) Load {
		return Load{Wanted: wanted, Available: wanted, Observed: true, Limit: own, Own: own}
	}
	pending := func(l Load) Load {
		l.Pending = &Change{Outdated: l.Wanted}
		return l
	}
	broken := func(l Load, n int32) Load {
		l.Available -= n
		return l
	}
	rolling := func(l Load, limit, outdated int32) Load {
		l.Limit, l.Outdated = limit, outdated
		return l
	}
	unseen := func(l Load) Load {
		l.Observed = false
		return l
	}
	fixed := func(l Load) Load {
		l.Fixed = true
		return l
	}
	gets := func(limit int32) Verdict { return Verdict{Limit: limit} }
	held := func(limit int32) Verdict { return Verdict{Limit: limit, Held: true} }
	for name, tc := range map[string]struct {
		budget  int32
		subsets []Load
		want    []Verdict
	}{
		"each its own, then the rest":          {5, []Load{pending(rest(10, 3)), pending(rest(10, 3)), pending(rest(10, 3))}, []Verdict{gets(3), gets(2), held(3)}},
		"no more than it has":                  {5, []Load{pending(rest(2, 9)), pending(rest(10, 9))}, []Verdict{gets(2), gets(3)}},
		"what is broken elsewhere counts":      {5, []Load{broken(rest(9, 9), 4), pending(rest(10, 3))}, []Verdict{gets(9), gets(1)}},
		"nothing is left":                      {4, []Load{broken(rest(9, 9), 4), pending(rest(10, 3))}, []Verdict{gets(9), held(3)}},
		"its own broken Pods may be replaced":  {4, []Load{broken(pending(rest(9, 9)), 4), pending(rest(10, 3))}, []Verdict{gets(4), held(3)}},
		"a spec that was not seen counts full": {5, []Load{unseen(rest(10, 1)), pending(rest(10, 3))}, []Verdict{gets(1), held(3)}},
		"its own spec was not seen":            {5, []Load{unseen(pending(rest(10, 1)))}, []Verdict{held(1)}},
		"the end of one is the start of the next": {
			5, []Load{rolling(broken(rest(10, 5), 1), 5, 1), pending(rest(10, 5))}, []Verdict{gets(5), gets(3)},
		},
		"it grows to twice":                  {4, []Load{rolling(rest(10, 9), 2, 9)}, []Verdict{gets(4)}},
		"it does not grow by a little":       {5, []Load{rolling(rest(20, 9), 4, 19)}, []Verdict{gets(4)}},
		"it grows to what it can use":        {5, []Load{rolling(rest(20, 5), 4, 19)}, []Verdict{gets(5)}},
		"another template keeps what it had": {4, []Load{pending(rolling(broken(rest(10, 9), 2), 4, 5)), rest(5, 5)}, []Verdict{gets(4), gets(5)}},
		"surge alone takes nothing":          {1, []Load{broken(rest(9, 9), 4), pending(rest(10, 0))}, []Verdict{gets(9), gets(0)}},
		"no Pods take nothing":               {1, []Load{broken(rest(9, 9), 4), pending(rest(0, 3))}, []Verdict{gets(9), gets(3)}},
		"a fixed limit fits":                 {5, []Load{fixed(pending(rest(4, 4))), fixed(pending(rest(4, 1)))}, []Verdict{gets(4), gets(1)}},
		"a fixed limit does not fit":         {3, []Load{fixed(pending(rest(4, 4))), pending(rest(4, 2))}, []Verdict{held(4), gets(2)}},
		"what breaks elsewhere lowers it":    {5, []Load{broken(rest(9, 9), 3), rolling(rest(10, 9), 4, 9)}, []Verdict{gets(9), gets(2)}},
		"but it goes on":                     {2, []Load{broken(rest(9, 9), 3), rolling(rest(10, 9), 4, 9)}, []Verdict{gets(9), gets(1)}},
		"not below what is out of service":   {2, []Load{broken(rest(9, 9), 3), rolling(broken(rest(10, 9), 3), 4, 7)}, []Verdict{gets(9), gets(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Share(tc.budget, tc.subsets)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
