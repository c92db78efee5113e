package budget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBeside(t *testing.T) {
	all := func(n int) Side { return Side{Total: n} }
	half, whole, frozen := Limits{4, 0, 0, 2, Unlimited}, Limits{4, 0, 0, 4, Unlimited}, Limits{4, 4, 0, 4, Unlimited}
	cases := map[string]struct {
		limits Limits
		counts Counts
		same   bool
		want   Moves
	}{
		"new Pods come up beside the old ones":           {half, Counts{Old: all(4)}, false, Moves{Create: 2, CreateNow: 2}},
		"as many as maxSurge says":                       {half, Counts{Old: all(4), New: all(2)}, false, Moves{Surge: 2}},
		"all of them":                                    {whole, Counts{Old: all(4), New: all(2)}, false, Moves{Create: 2, CreateNow: 2, Surge: 2}},
		"none goes when all are there":                   {whole, Counts{Old: all(4), New: all(4)}, false, Moves{Surge: 4}},
		"nor one that is not available":                  {whole, Counts{Old: Side{Total: 4, Unavailable: 2}, New: all(4)}, false, Moves{Surge: 4}},
		"an old Pod that is lost comes back":             {whole, Counts{Old: all(3), New: all(4)}, false, Moves{Create: 1, CreateOld: 1, CreateNow: 1, Surge: 3}},
		"a smaller maxSurge takes none":                  {half, Counts{Old: all(4), New: all(4)}, false, Moves{Surge: 4}},
		"scaling in takes from both":                     {Limits{2, 0, 0, 2, Unlimited}, Counts{Old: all(4), New: all(4)}, false, Moves{Delete: 4, DeleteOld: 2, DeleteReady: 4, Surge: 6}},
		"what is led to new Pods stays with them":        {Limits{2, 0, 0, 1, Unlimited}, Counts{Old: all(4), New: all(2)}, false, Moves{Delete: 2, DeleteOld: 2, DeleteReady: 2, Surge: 4}},
		"a template that nobody has decided about":       {frozen, Counts{Old: all(8)}, false, Moves{Surge: 4}},
		"the old template, which is the new one now":     {frozen, Counts{Old: all(4), New: all(4)}, true, Moves{Surge: 4}},
		"a Pod that is lost then, with enough of others": {frozen, Counts{Old: all(7)}, false, Moves{Surge: 3}},
		"no older revision":                              {whole, Counts{New: all(3)}, true, Moves{Create: 1, CreateNow: 1}},
		"a Pod that a user names goes, and comes back":   {whole, Counts{Old: Side{Total: 4, Specified: 1}, New: all(4)}, false, Moves{DeleteReady: 1, Surge: 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Plan(tc.limits, tc.counts, Rules{Beside: true, Same: tc.same})); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}
