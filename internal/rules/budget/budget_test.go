package budget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

func value(v any) *intstr.IntOrString {
	var out intstr.IntOrString
	switch v := v.(type) {
	case int:
		out = intstr.FromInt32(int32(v))
	case string:
		out = intstr.FromString(v)
	default:
		return nil
	}
	return &out
}

func TestPartition(t *testing.T) {
	cases := map[string]struct {
		replicas  int
		partition any
		want      int
	}{
		"unset keeps none":                   {10, nil, 0},
		"5% of 10 rounds up":                 {10, "5%", 1},
		"12.5% of 10 rounds up":              {10, "12.5%", 2},
		"95% of 10 leaves one to update":     {10, "95%", 9},
		"99% of 10 leaves one to update":     {10, "99%", 9},
		"100% of 10 keeps all":               {10, "100%", 10},
		"a number beyond replicas keeps all": {10, 12, 10},
		"50% of one keeps it":                {1, "50%", 1},
		"67% of 3 leaves one to update":      {3, "67%", 2},
		"50% of 5 rounds up":                 {5, "50%", 3},
		"100.0% keeps all as 100% does":      {10, "100.0%", 10},
		"0100% keeps all as 100% does":       {10, "0100%", 10},
		"a huge percentage keeps all":        {10, "1000%", 10},
		"99.9% of 10 leaves one to update":   {10, "99.9%", 9},
		"a percentage of none is none":       {0, "50%", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Partition(value(tc.partition), tc.replicas)
			if err != nil || got != tc.want {
				t.Errorf("Partition(%v of %d) = %d, %v, want %d", tc.partition, tc.replicas, got, err, tc.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	cases := map[string]struct {
		strategy Strategy
		replicas int32
		want     Limits
		wantErr  string
	}{
		"maxUnavailable is 20% where unset":       {Strategy{}, 10, Limits{10, 0, 2, 0, Unlimited}, ""},
		"20% of 4 is 1 without surge":             {Strategy{MaxUnavailable: value("20%")}, 4, Limits{4, 0, 1, 0, Unlimited}, ""},
		"20% of 4 is 0 with surge":                {Strategy{MaxUnavailable: value("20%"), MaxSurge: value(1)}, 4, Limits{4, 0, 0, 1, Unlimited}, ""},
		"25% of 10 is 3 without surge":            {Strategy{MaxUnavailable: value("25%")}, 10, Limits{10, 0, 3, 0, Unlimited}, ""},
		"25% of 10 is 2 with surge":               {Strategy{MaxUnavailable: value("25%"), MaxSurge: value("5%")}, 10, Limits{10, 0, 2, 1, Unlimited}, ""},
		"30% of 7 is 2 with surge":                {Strategy{MaxUnavailable: value("30%"), MaxSurge: value(1)}, 7, Limits{7, 0, 2, 1, Unlimited}, ""},
		"paused has no surge and rounds up":       {Strategy{MaxUnavailable: value("25%"), MaxSurge: value("20%"), Paused: true}, 10, Limits{10, 0, 3, 0, Unlimited}, ""},
		"on delete ignores all but one in five":   {Strategy{OnDelete: true, Partition: value(3), MaxSurge: value(2)}, 10, Limits{10, 0, 2, 0, Unlimited}, ""},
		"on delete lets one of three go":          {Strategy{OnDelete: true}, 3, Limits{3, 0, 1, 0, Unlimited}, ""},
		"the scale limit rounds up":               {Strategy{ScaleMaxUnavailable: value("5%")}, 6, Limits{6, 0, 2, 0, 1}, ""},
		"5% of 6 lets one go":                     {Strategy{MaxUnavailable: value("5%")}, 6, Limits{6, 0, 1, 0, Unlimited}, ""},
		"a fraction counts for maxUnavailable":    {Strategy{MaxUnavailable: value("12.5%")}, 8, Limits{8, 0, 1, 0, Unlimited}, ""},
		"text without a percent sign is refused":  {Strategy{MaxUnavailable: value("5")}, 8, Limits{}, `maxUnavailable: "5" is neither a number nor a percentage such as "20%"`},
		"a negative number is refused":            {Strategy{Partition: value(-1)}, 8, Limits{}, "partition: -1 is negative: use 0 or more"},
		"an exponent is refused":                  {Strategy{MaxSurge: value("1e9%")}, 8, Limits{}, `maxSurge: "1e9%" is neither a number nor a percentage such as "20%"`},
		"a bad scale limit is refused":            {Strategy{ScaleMaxUnavailable: value("x%")}, 8, Limits{}, `scaleStrategy.maxUnavailable: "x%" is neither a number nor a percentage such as "20%"`},
		"a bad maxSurge is refused though paused": {Strategy{MaxSurge: value("%"), Paused: true}, 8, Limits{}, `maxSurge: "%" is neither a number nor a percentage such as "20%"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(tc.strategy, tc.replicas)
			gotErr := ""
			if err != nil {
				gotErr, got = err.Error(), Limits{}
			}
			if diff := cmp.Diff(tc.wantErr, gotErr); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzScaled(f *testing.F) {
	for _, seed := range []string{"20%", "12.5%", "5", "%", "-1%", "1e9%", "1/3%", "00.000%", "99999999999999999999%"} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, total int) {
		if total < 0 {
			total = -(total + 1)
		}
		v := intstr.FromString(text)
		upward, errUp := Scaled(&v, total, Up)
		downward, errDown := Scaled(&v, total, Down)
		if (errUp == nil) != (errDown == nil) {
			t.Fatalf("%q: rounding decides whether it can be read: %v, %v", text, errUp, errDown)
		}
		if errUp == nil && (downward < 0 || upward < downward || upward > downward+1) {
			t.Fatalf("%q of %d: %d up, %d down", text, total, upward, downward)
		}
	})
}

func TestPlan(t *testing.T) {
	all := func(n int) Side { return Side{Total: n} }
	cases := map[string]struct {
		limits Limits
		counts Counts
		rules  Rules
		want   Moves
	}{
		"growth at partition 5 is of the new revision": {
			Limits{12, 5, 3, 0, Unlimited}, Counts{Old: all(5), New: all(5)}, Rules{},
			Moves{Create: 2, CreateNow: 2, UpdateLimit: 1},
		},
		"growth at partition 50% is shared": {
			Limits{12, 6, 3, 0, Unlimited}, Counts{Old: all(5), New: all(5)}, Rules{},
			Moves{Create: 2, CreateOld: 1, CreateNow: 2, UpdateLimit: 1},
		},
		"shrinking takes from both sides": {
			Limits{6, 3, 2, 0, Unlimited}, Counts{Old: all(5), New: all(5)}, Rules{},
			Moves{Delete: 4, DeleteOld: 2, DeleteReady: 6, UpdateLimit: 6},
		},
		"surge is no more than what the update needs": {
			Limits{8, 6, 0, 4, Unlimited}, Counts{Old: all(8)}, Rules{},
			Moves{Create: 2, CreateNow: 2, Surge: 2, Update: 2},
		},
		"three at a time": {
			Limits{10, 0, 3, 0, Unlimited}, Counts{Old: all(10)}, Rules{},
			Moves{Update: 10, UpdateLimit: 3},
		},
		"growth waits for the scale limit": {
			Limits{20, 0, 4, 0, 3}, Counts{New: Side{Total: 10, Unavailable: 1}}, Rules{},
			Moves{Create: 10, CreateNow: 2, UpdateLimit: -6},
		},
		"a specified Pod goes within maxUnavailable": {
			Limits{5, 0, 2, 1, Unlimited}, Counts{New: Side{Total: 5, Specified: 1, Unavailable: 1}}, Rules{},
			Moves{DeleteReady: 1, UpdateLimit: 2},
		},
		"a specified Pod beyond maxUnavailable gets a replacement first": {
			Limits{5, 0, 1, 1, Unlimited}, Counts{New: Side{Total: 5, Specified: 1, Unavailable: 1}}, Rules{},
			Moves{Create: 1, CreateNow: 1, Surge: 1, UpdateLimit: 1},
		},
		"a specified Pod that is itself unavailable needs no surge": {
			Limits{5, 0, 1, 1, Unlimited}, Counts{New: Side{Total: 5, Specified: 1}}, Rules{},
			Moves{DeleteReady: 1, UpdateLimit: 1},
		},
		"a specified Pod that is unavailable leaves less for the others": {
			Limits{6, 0, 2, 0, Unlimited}, Counts{New: Side{Total: 6, Specified: 3, SpecifiedUnavailable: 1}}, Rules{},
			Moves{DeleteReady: 1, UpdateLimit: 2},
		},
		"a surge Pod that stands in for a specified one is no surplus to update": {
			Limits{6, 5, 0, 2, 1}, Counts{Old: Side{Total: 7, Specified: 2, Unavailable: 1}}, Rules{},
			Moves{Create: 1, Surge: 2, UpdateLimit: 1},
		},
		"nor is one at the update revision, with rollback": {
			Limits{6, 1, 0, 2, 1}, Counts{New: Side{Total: 7, Specified: 2, Unavailable: 1}}, Rules{Rollback: true},
			Moves{Create: 1, CreateOld: 1, Surge: 2, UpdateLimit: 1},
		},
		"when Pods are missing on both sides, none is moved from one to the other": {
			Limits{5, 4, 5, 1, Unlimited}, Counts{Old: all(2)}, Rules{Rollback: true},
			Moves{Create: 3, CreateOld: 2, CreateNow: 3, UpdateLimit: 2},
		},
		"a raised partition takes nothing back by itself": {
			Limits{5, 4, 1, 0, Unlimited}, Counts{Old: all(2), New: all(3)}, Rules{},
			Moves{UpdateLimit: 1},
		},
		"a raised partition takes Pods back with rollback": {
			Limits{5, 4, 1, 0, Unlimited}, Counts{Old: all(2), New: all(3)}, Rules{Rollback: true},
			Moves{Update: -2, UpdateLimit: 1},
		},
		"a Pod held by its hook is a replica": {
			Limits{5, 0, 1, 0, Unlimited}, Counts{New: Side{Total: 5, PreparingDelete: 1}}, Rules{},
			Moves{UpdateLimit: 1, Update: 0},
		},
		"a Pod held by its hook is replaced at once where it is left out": {
			Limits{5, 0, 1, 0, Unlimited}, Counts{New: Side{Total: 5, PreparingDelete: 1}}, Rules{ExcludePreparingDelete: true},
			Moves{Create: 1, CreateNow: 1, UpdateLimit: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Plan(tc.limits, tc.counts, tc.rules)); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTake(t *testing.T) {
	cases := map[string]struct {
		candidates    Candidates
		number, limit int
		want          int
	}{
		"no more than the limit":                         {Candidates{Available: []bool{true, true, true}}, 3, 2, 2},
		"no more than wanted":                            {Candidates{Available: []bool{true, true, true}}, 1, 2, 1},
		"what is under way takes a place":                {Candidates{Available: []bool{true, true}, Unavailable: 1, UnavailableAtTarget: 1}, 2, 2, 1},
		"unavailable ones cost no availability":          {Candidates{Available: []bool{false, false, true}, Unavailable: 2}, 3, 2, 2},
		"broken old Pods are updated within the limit":   {Candidates{Available: []bool{false, false, false}, Unavailable: 3}, 3, 1, 1},
		"one that waits makes those behind it wait":      {Candidates{Available: []bool{true, false}, Unavailable: 1}, 2, 1, 0},
		"a limit below zero takes none":                  {Candidates{Available: []bool{false}, Unavailable: 1}, 1, -2, 0},
		"a number beyond the candidates takes all there": {Candidates{Available: []bool{true}}, 9, 9, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Take(tc.candidates, tc.number, tc.limit); got != tc.want {
				t.Errorf("Take() = %d, want %d", got, tc.want)
			}
		})
	}
}

// TestPlanKeepsItsLimits walks every state of up to seven replicas.
func TestPlanKeepsItsLimits(t *testing.T) {
	states := 0
	for replicas := 0; replicas <= 7; replicas++ {
		for partition := 0; partition <= replicas; partition++ {
			for surge := 0; surge <= 2; surge++ {
				for unavailable := 0; unavailable <= 2; unavailable++ {
					l := Limits{replicas, partition, unavailable, surge, Unlimited}
					for _, counts := range smallCounts(replicas + surge) {
						states++
						checkMoves(t, l, counts)
					}
				}
			}
		}
	}
	t.Logf("%d states", states)
}

func smallCounts(most int) []Counts {
	var all []Counts
	for old := 0; old <= most; old++ {
		for new := 0; old+new <= most; new++ {
			for _, o := range []Side{{Total: old}, {Total: old, Unavailable: old}, {Total: old, Specified: min(old, 1)}, {Total: old, PreparingDelete: min(old, 1)}} {
				for _, n := range []Side{{Total: new}, {Total: new, Unavailable: min(new, 1)}, {Total: new, Specified: min(new, 1)}} {
					all = append(all, Counts{o, n})
				}
			}
		}
	}
	return all
}

func checkMoves(t *testing.T, l Limits, c Counts) {
	t.Helper()
	m := Plan(l, c, Rules{})
	switch {
	case m.CreateNow > m.Create || m.CreateOld > m.Create || m.DeleteOld > m.Delete:
		t.Fatalf("%+v %+v: a part exceeds its whole: %+v", l, c, m)
	case m.Create > 0 && m.Delete > 0:
		t.Fatalf("%+v %+v: creates and deletes at once: %+v", l, c, m)
	case c.Total()+m.Create > max(l.Replicas+l.MaxSurge, c.Total()):
		t.Fatalf("%+v %+v: more Pods than replicas and surge: %+v", l, c, m)
	case m.Surge > l.MaxSurge:
		t.Fatalf("%+v %+v: more surge than maxSurge: %+v", l, c, m)
	case m.Update < 0:
		t.Fatalf("%+v %+v: takes Pods back without rollback: %+v", l, c, m)
	case m.Update > 0 && c.New.staying()+m.Update > l.Expected():
		t.Fatalf("%+v %+v: updates beyond the partition: %+v", l, c, m)
	case m.DeleteReady > max(0, l.MaxUnavailable+c.Total()-l.Replicas-c.Unavailable()):
		t.Fatalf("%+v %+v: deletes ready Pods beyond maxUnavailable: %+v", l, c, m)
	}
}

// TestTakeKeepsTheLimit: however candidates are mixed, no available Pod goes while limit Pods are unavailable.
func TestTakeKeepsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		available := rapid.SliceOfN(rapid.Bool(), 0, 20).Draw(t, "available")
		down := 0
		for _, a := range available {
			if !a {
				down++
			}
		}
		atTarget := rapid.IntRange(0, 5).Draw(t, "unavailable at target")
		limit := rapid.IntRange(-3, 12).Draw(t, "limit")
		n := Take(Candidates{available, down + atTarget, atTarget}, rapid.IntRange(0, 25).Draw(t, "number"), limit)
		after := down + atTarget
		for _, a := range available[:n] {
			if a {
				after++
			}
		}
		if after > max(limit, down+atTarget) || (n > 0 && atTarget+n > limit) {
			t.Fatalf("took %d: %d unavailable, limit %d", n, after, limit)
		}
	})
}
