package migrate

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNext(t *testing.T) {
	at := func(replicas, pods, available int32) Side { return Side{replicas, pods, available, true} }
	goal := Goal{Total: 5, Target: 5}
	for name, tc := range map[string]struct {
		from, to Side
		goal     Goal
		limits   Limits
		want     Step
	}{
		"one comes first":                   {at(5, 5, 5), at(0, 0, 0), goal, Limits{1, 0}, Step{From: 5, To: 1}},
		"it has to be available":            {at(5, 5, 5), at(1, 1, 0), goal, Limits{1, 0}, Step{From: 5, To: 1, Waits: "5 of 5 Pods are available"}},
		"then one goes":                     {at(5, 5, 5), at(1, 1, 1), goal, Limits{1, 0}, Step{From: 4, To: 1}},
		"and has to be gone":                {at(4, 5, 5), at(1, 1, 1), goal, Limits{1, 0}, Step{From: 4, To: 1, Waits: "5 of 5 Pods are available"}},
		"and the next comes":                {at(4, 4, 4), at(1, 1, 1), goal, Limits{1, 0}, Step{From: 4, To: 2}},
		"without surge one goes first":      {at(5, 5, 5), at(0, 0, 0), goal, Limits{0, 1}, Step{From: 4, To: 0}},
		"both at once":                      {at(5, 5, 5), at(0, 0, 0), goal, Limits{2, 1}, Step{From: 4, To: 2}},
		"the last one goes":                 {at(1, 1, 1), at(5, 5, 5), goal, Limits{1, 0}, Step{From: 0, To: 5}},
		"the last one is on its way":        {at(0, 1, 1), at(5, 5, 5), goal, Limits{1, 0}, Step{From: 0, To: 5, Waits: "1 Pods are on their way out"}},
		"done":                              {at(0, 0, 0), at(5, 5, 5), goal, Limits{1, 0}, Step{From: 0, To: 5, Done: true}},
		"done where some stay":              {at(3, 3, 3), at(2, 2, 2), Goal{Total: 5, Target: 2}, Limits{1, 0}, Step{From: 3, To: 2, Done: true}},
		"nothing before it is seen":         {Side{5, 5, 5, false}, at(1, 1, 1), goal, Limits{1, 0}, Step{From: 5, To: 1, Waits: "the controllers have not seen the present replicas yet"}},
		"Pods that were broken before stay": {at(5, 5, 3), at(0, 0, 0), goal, Limits{1, 0}, Step{From: 5, To: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Next(tc.from, tc.to, tc.goal, tc.limits); got != tc.want {
				t.Errorf("the step is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestNeverTooFew plays two workloads whose Pods come, become available and go at any time and in any order, and breaks off at any step: there are
// never too many and never too few, and in the end all have moved.
func TestNeverTooFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(1, 8).Draw(t, "total")
		goal := Goal{Total: total, Target: rapid.Int32Range(1, total).Draw(t, "target")}
		limits := Limits{rapid.Int32Range(0, 3).Draw(t, "maxSurge"), rapid.Int32Range(0, 3).Draw(t, "maxUnavailable")}
		if limits == (Limits{}) {
			limits.MaxSurge = 1
		}
		from, to := Side{total, total, total, true}, Side{Seen: true}
		for range 1000 {
			step := Next(from, to, goal, limits)
			if step.Done {
				if from.Pods != total-goal.Target || to.Available != goal.Target {
					t.Fatalf("it is done with %+v and %+v", from, to)
				}
				return
			}
			// A program that was broken off between its two writes has made only one of them.
			if rapid.Bool().Draw(t, "writes one") {
				to.Replicas = step.To
			}
			if rapid.Bool().Draw(t, "writes other") {
				from.Replicas = step.From
			}
			for _, s := range []*Side{&from, &to} {
				s.live(rapid.Int32Range(0, 3).Draw(t, "happens"))
			}
			if available := from.Available + to.Available; available < total-limits.MaxUnavailable {
				t.Fatalf("%d Pods of %d are available: %+v, %+v", available, total, from, to)
			}
			if pods := from.Pods + to.Pods; pods > total+limits.MaxSurge {
				t.Fatalf("there are %d Pods of %d: %+v, %+v", pods, total, from, to)
			}
		}
		t.Fatalf("it does not end: %+v, %+v", from, to)
	})
}

// live does so much of what a controller and a kubelet would do.
func (s *Side) live(much int32) {
	for range much {
		switch {
		case s.Pods > s.Replicas:
			s.Pods--
			s.Available = min(s.Available, s.Pods)
		case s.Available < s.Pods:
			s.Available++
		case s.Pods < s.Replicas:
			s.Pods++
		}
	}
}
