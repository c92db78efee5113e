package replicasets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// set returns a ReplicaSet of a size, of which some Pods are available and all of those ready.
func set(name string, replicas, available int32) Set {
	revision := int64(strings.IndexAny("abcdef", name)) + 1
	return Set{
		Name: name, Replicas: replicas, Pods: replicas, Ready: available, Available: available, Settled: true, Desired: -1,
		Revision: revision, Created: time.Unix(revision, 0),
	}
}

func TestNext(t *testing.T) {
	held := func(s Set) Set { s.Held = true; return s }
	unsettledSet := func(s Set) Set { s.Settled = false; return s }
	scaledFor := func(s Set, desired int32) Set { s.Desired = desired; return s }
	leaving := func(s Set, pods int32) Set { s.Pods, s.Ready, s.Available = pods, pods, pods; return s }
	cases := map[string]struct {
		limits Limits
		fresh  Set
		old    []Set
		want   string
	}{
		"a first step moves at once what the budget allows":              {Limits{10, 3, 2, 5}, set("f", 0, 0), []Set{set("a", 10, 10)}, "hold [8] 5"},
		"a small first step is all surge":                                {Limits{10, 3, 2, 1}, set("f", 0, 0), []Set{set("a", 10, 10)}, "[10] 1"},
		"the rest follows once the new Pods are available":               {Limits{10, 3, 2, 10}, set("f", 5, 5), []Set{set("a", 8, 8)}, "given [3] 10"},
		"a new one that is not the largest gets nothing from Kubernetes": {Limits{10, 3, 2, 8}, set("f", 5, 5), []Set{set("a", 8, 8)}, "hold [5] 8"},
		"nor does one that is not the largest between two writes":        {Limits{10, 3, 0, 10}, set("f", 5, 5), []Set{set("a", 2, 0), set("b", 6, 6)}, "hold [0 5] 8: 11 Pods are available, of which 10 have to stay"},
		"one that is may get Pods of two others":                         {Limits{10, 3, 0, 10}, set("f", 7, 7), []Set{set("a", 2, 0), set("b", 4, 4)}, "given [0 3] 10"},
		"Pods that are not available yet are waited for":                 {Limits{10, 3, 2, 10}, set("f", 5, 0), []Set{set("a", 8, 8)}, "[8] 5: 8 Pods are available, of which 8 have to stay"},
		"without surge, old Pods go first":                               {Limits{10, 0, 1, 2}, set("f", 0, 0), []Set{set("a", 10, 10)}, "hold [9] 1: 10 Pods are available, of which 9 have to stay"},
		"one more Pod and none unavailable goes Pod by Pod":              {Limits{3, 1, 0, 3}, set("f", 1, 1), []Set{set("a", 3, 3)}, "hold [2] 2: 4 Pods are available, of which 3 have to stay"},
		"the limit is kept":                                              {Limits{10, 3, 2, 5}, set("f", 5, 5), []Set{set("a", 8, 8)}, "[8] 5"},
		"more than the limit stay as they are":                           {Limits{10, 3, 2, 2}, set("f", 5, 5), []Set{set("a", 8, 8)}, "[8] 5"},
		"old Pods that are not ready go first":                           {Limits{10, 3, 2, 10}, set("f", 3, 3), []Set{set("a", 10, 5)}, "hold [5] 8: 8 Pods are available, of which 8 have to stay"},
		"of old Pods, the middle version goes first":                     {Limits{10, 3, 2, 4}, set("f", 0, 0), []Set{set("a", 8, 8), set("b", 5, 5)}, "hold [8 1] 4"},
		"a move that was interrupted is gone on with":                    {Limits{10, 3, 2, 5}, set("f", 1, 1), []Set{held(set("a", 8, 8))}, "hold [8] 5"},
		"a ReplicaSet whose status is behind gives no Pod":               {Limits{10, 3, 2, 5}, set("f", 1, 1), []Set{unsettledSet(set("a", 12, 12))}, "[12] 1: the status of ReplicaSet a is not of its present spec"},
		"no Pod is given while the new one's status is behind":           {Limits{4, 0, 1, 4}, unsettledSet(set("f", 3, 3)), []Set{set("a", 1, 1)}, "[1] 3: the status of ReplicaSet f is not of its present spec"},
		"Pods that are still to be deleted may be available ones":        {Limits{10, 3, 2, 10}, set("f", 5, 5), []Set{leaving(set("a", 8, 0), 10)}, "given [3] 10"},
		"scaling comes first":                                            {Limits{20, 5, 5, 10}, set("f", 2, 2), []Set{scaledFor(set("a", 11, 11), 10)}, "[11] 2: ReplicaSet a was scaled for 10 replicas, and there are 20"},
		"the only one with the right size is not waited for":             {Limits{2, 1, 0, 2}, set("f", 0, 0), []Set{scaledFor(set("a", 2, 2), 5)}, "[2] 1: 2 Pods are available, of which 2 have to stay"},
		"too many Pods are left to Kubernetes":                           {Limits{10, 1, 2, 5}, set("f", 2, 2), []Set{set("a", 11, 11)}, "[11] 2: there are 13 replicas, and 11 are allowed"},
		"what is missing is left to Kubernetes":                          {Limits{10, 3, 2, 5}, set("f", 1, 1), []Set{set("a", 10, 10)}, "[10] 1: there are 11 replicas, and a paused Deployment comes to rest at 13"},
		"a small Deployment with much surge gets its old Pods from us":   {Limits{2, 3, 0, 2}, set("f", 0, 0), []Set{set("a", 2, 2)}, "hold [3] 2"},
		"a move that is needed no more is taken back":                    {Limits{4, 0, 2, 2}, set("f", 2, 2), []Set{held(set("a", 1, 1))}, "hold [2] 2"},
		"no replicas": {Limits{0, 0, 0, 0}, set("f", 0, 0), []Set{set("a", 0, 0)}, "[0] 0"},
		"a new version that never starts takes no more old Pods": {Limits{10, 3, 2, 10}, set("f", 5, 0), []Set{set("a", 8, 7)}, "[8] 5: 7 Pods are available, of which 8 have to stay"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, words(Next(tc.limits, tc.fresh, tc.old))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func words(m Move) string {
	out := fmt.Sprint(m.Old, m.New)
	switch {
	case m.Given:
		out = "given " + out
	case m.Hold:
		out = "hold " + out
	}
	if m.Wait != "" {
		out += ": " + m.Wait
	}
	return out
}

// TestMovesStayInTheBudget asks for the next move wherever ReplicaSets may stand.
func TestMovesStayInTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, most int32) int32 { return rapid.Int32Range(0, most).Draw(t, name) }
		l := Limits{Replicas: n("replicas", 20), Surge: n("surge", 8)}
		l.Unavailable, l.Updated = n("unavailable", l.Replicas), n("updated", l.Replicas)
		some := func(name string) Set {
			s := set(name, n(name, 20), 0)
			s.Pods = n(name+" Pods", 20)
			s.Ready = n(name+" ready", s.Pods)
			s.Available, s.Held, s.Settled = n(name+" available", s.Ready), rapid.Bool().Draw(t, name+" held"), rapid.Bool().Draw(t, name+" settled")
			return s
		}
		fresh, old := some("f"), []Set{some("a"), some("b")}
		m := Next(l, fresh, old)
		before, after := totalOf(fresh, old), m.New
		taken, notReady, available := int32(0), int32(0), min(fresh.Available, fresh.Replicas)
		for i, s := range old {
			after += m.Old[i]
			taken += s.Replicas - m.Old[i]
			notReady += max(s.Replicas-s.Ready, 0)
			available += max(s.Available-max(s.Pods-s.Replicas-(s.Pods-s.Ready), 0), 0)
			if m.Old[i] < 0 {
				t.Fatalf("%s goes from %d to %d", s.Name, s.Replicas, m.Old[i])
			}
		}
		switch {
		case after > max(before, l.Replicas+l.Surge):
			t.Fatalf("%d Pods after %d", after, before)
		case m.New > max(fresh.Replicas, l.Updated) || m.New < fresh.Replicas:
			t.Fatalf("%d updated Pods after %d", m.New, fresh.Replicas)
		case taken > 0 && available-max(taken-notReady, 0) < l.Replicas-l.Unavailable && taken > notReady:
			t.Fatalf("%d Pods are taken of which %d are not ready, and only %d are available", taken, notReady, available)
		case taken != 0 && !m.Hold && !m.Given:
			t.Fatal("old ReplicaSets that are not held get other sizes")
		case m.Given && (m.Hold || after != before || taken != m.New-fresh.Replicas):
			t.Fatalf("the native controller is to give %d, and %d are taken", m.New-fresh.Replicas, taken)
		}
	})
}

// native is what the native controller makes of the sizes of a paused Deployment.
func native(l Limits, sizes []int32) {
	largest, active, total := 0, 0, int32(0)
	for i, n := range sizes {
		total += n
		if n > 0 {
			active++
		}
		if n > sizes[largest] {
			largest = i
		}
	}
	switch {
	case active == 1:
		sizes[largest] = l.Replicas
	case active > 1:
		sizes[largest] += l.most() - total
	}
}

// TestMovesCome has all Pods get available between moves: as many are updated as there should be, after few moves.
func TestMovesCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Replicas: rapid.Int32Range(1, 50).Draw(t, "replicas"), Surge: rapid.Int32Range(0, 20).Draw(t, "surge")}
		l.Unavailable = rapid.Int32Range(0, l.Replicas).Draw(t, "unavailable")
		if l.Surge+l.Unavailable == 0 {
			l.Unavailable = 1
		}
		l.Updated = rapid.Int32Range(1, l.Replicas).Draw(t, "updated")
		sizes := []int32{0, l.Replicas, 0}
		if rapid.Bool().Draw(t, "two old versions") && l.most() > 1 {
			sizes[2] = rapid.Int32Range(1, l.most()-1).Draw(t, "middle")
			sizes[1] = l.most() - sizes[2]
		}
		for moves := int32(0); sizes[0] < l.Updated; moves++ {
			old := []Set{set("a", sizes[1], sizes[1]), set("b", sizes[2], sizes[2])}
			m := Next(l, set("f", sizes[0], sizes[0]), old)
			if m.New == sizes[0] || moves > l.Replicas {
				t.Fatalf("%v after %d moves with limits %+v: %s", sizes, moves, l, words(m))
			}
			if !m.Given {
				sizes[0] = m.New
			}
			for _, i := range rapid.Permutation([]int{0, 1}).Draw(t, "order") { // it may look between two writes
				if sizes[i+1] = m.Old[i]; m.Given {
					native(l, sizes)
				}
			}
			native(l, sizes)
			if sizes[0] > l.Updated || sizes[0] != m.New && sizes[0]+sizes[1]+sizes[2] != l.Replicas {
				t.Fatalf("the native controller makes it %d updated Pods, want %d, and %d may be", sizes[0], m.New, l.Updated)
			}
		}
	})
}
