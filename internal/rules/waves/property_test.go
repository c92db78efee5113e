package waves

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// spec is what a subset's workload is told, and report what its controller tells.
type spec struct {
	template, limit, generation int32
}

type report struct {
	generation, available, outdated int32
}

// domain is a subset with its own controller, whose reports are on their way for any time.
type domain struct {
	replicas, own int32
	now           spec
	// seen is the spec that its controller works by, which lags behind.
	seen spec
	// old, down and fresh are its Pods: at another template than the controller works by, out of service, and updated.
	old, down, fresh int32
	underway         []report
	arrived          report
}

func (d *domain) tell() {
	d.underway = append(d.underway, report{d.seen.generation, d.old + d.fresh, d.old})
}

// world is a UnitedDeployment whose template changes.
type world struct {
	template, budget int32
	domains          []*domain
	share            func(int32, []Load) []Verdict
}

// load is what the hub believes of a domain.
func (w *world) load(d *domain) Load {
	l := Load{
		Wanted: d.replicas, Available: d.arrived.available, Outdated: d.arrived.outdated,
		Observed: d.arrived.generation == d.now.generation, Limit: d.now.limit, Own: d.own,
	}
	if d.now.template != w.template {
		l.Pending = &Change{Outdated: d.replicas}
	}
	return l
}

// reconcile has the hub write what it decides by the reports that have arrived.
func (w *world) reconcile() (writes int) {
	var loads []Load
	for _, d := range w.domains {
		loads = append(loads, w.load(d))
	}
	for i, v := range w.share(w.budget, loads) {
		d := w.domains[i]
		after := spec{d.now.template, v.Limit, d.now.generation}
		if loads[i].Pending != nil && !v.Held {
			after.template = w.template
		}
		if after != d.now {
			after.generation++
			d.now = after
			writes++
		}
	}
	return writes
}

// step lets one thing happen.
func (w *world) step(pick func(int) int) {
	d := w.domains[pick(len(w.domains))]
	switch pick(6) {
	case 0:
		w.reconcile()
	case 1: // its controller reads its spec
		if d.seen.template != d.now.template {
			d.old, d.fresh = d.old+d.fresh, 0 // those that are out of service come back at the new template
		}
		d.seen = d.now
		d.tell()
	case 2: // it takes Pods out of service
		take := max(min(d.old, d.seen.limit-d.down), 0)
		d.old, d.down = d.old-take, d.down+take
		d.tell()
	case 3: // one is available again
		if d.down > 0 {
			d.down, d.fresh = d.down-1, d.fresh+1
			d.tell()
		}
	case 4:
		if len(d.underway) > 0 {
			d.arrived, d.underway = d.underway[0], d.underway[1:]
		}
	case 5:
		if pick(20) == 0 {
			w.template++
		}
	}
}

func (w *world) down() (n int32) {
	for _, d := range w.domains {
		n += d.down
	}
	return n
}

func newDomains(share func(int32, []Load) []Verdict, pick func(int) int) *world {
	w := &world{budget: int32(1 + pick(6)), share: share}
	for range 1 + pick(4) {
		d := &domain{replicas: int32(pick(8)), own: int32(1 + pick(5))}
		d.fresh = d.replicas
		d.now.limit = d.own
		d.seen, d.arrived = d.now, report{available: d.fresh}
		w.domains = append(w.domains, d)
	}
	return w
}

// run lets a world go on for a while, and returns what was wrong, then lets everything arrive and returns whether the rollout ends.
func (w *world) run(steps int, pick func(int) int) error {
	for range steps {
		w.step(pick)
		if w.down() > w.budget {
			return fmt.Errorf("%d Pods are out of service, and the budget is %d", w.down(), w.budget)
		}
	}
	return w.settle()
}

func (w *world) settle() error {
	for range 150 {
		w.reconcile()
		for i, d := range w.domains {
			at := func(what int) func(int) int {
				first := true
				return func(int) int {
					if first {
						first = false
						return i
					}
					return what
				}
			}
			for _, what := range []int{1, 2, 3} {
				w.step(at(what))
			}
			for len(d.underway) > 0 {
				w.step(at(4))
			}
			if w.down() > w.budget {
				return fmt.Errorf("%d Pods are out of service, and the budget is %d", w.down(), w.budget)
			}
		}
	}
	for i, d := range w.domains {
		if d.now.template != w.template || d.fresh != d.replicas {
			return fmt.Errorf("subset %d is left at template %d of %d, with %d of %d Pods updated", i, d.now.template, w.template, d.fresh, d.replicas)
		}
	}
	if writes := w.reconcile(); writes > 0 {
		return fmt.Errorf("at rest %d limits are written", writes)
	}
	return nil
}

// TestTheBudgetHolds: whatever the order in which controllers act and their reports arrive, no more Pods are out of service than the budget
// allows, and the rollout ends.
func TestTheBudgetHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "") }
		if err := newDomains(Share, pick).run(120, pick); err != nil {
			r.Fatal(err)
		}
	})
}

// TestMistakesShow makes mistakes on purpose, each of which some order of events must show.
func TestMistakesShow(t *testing.T) {
	for name, mistaken := range map[string]func(int32, []Load) []Verdict{
		"a report is taken for one of the present spec": func(budget int32, all []Load) []Verdict {
			for i := range all {
				all[i].Observed = true
			}
			return Share(budget, all)
		},
		"Pods that are still to be replaced are forgotten": func(budget int32, all []Load) []Verdict {
			for i := range all {
				all[i].Outdated = 0
			}
			return Share(budget, all)
		},
		"each subset has the budget": func(budget int32, all []Load) (out []Verdict) {
			for i := range all {
				out = append(out, Share(budget, all[i:i+1])...)
			}
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			shown := ""
			for seed := range 3000 {
				random := uint64(seed)*2 + 1
				pick := func(n int) int {
					random = random*6364136223846793005 + 1442695040888963407
					return int(random>>33) % n
				}
				if err := newDomains(mistaken, pick).run(120, pick); err != nil {
					shown = err.Error()
					break
				}
			}
			t.Log(shown)
			if shown == "" {
				t.Error("no run shows it")
			}
		})
	}
}

// TestFewLimitsAreWritten: a rollout writes each subset a few times, however many Pods it has.
func TestFewLimitsAreWritten(t *testing.T) {
	w := &world{budget: 100, share: Share, template: 1}
	for range 10 {
		d := &domain{replicas: 100, own: 25, fresh: 100}
		d.now.limit = 25
		d.seen, d.arrived = d.now, report{available: 100}
		w.domains = append(w.domains, d)
	}
	writes := 0
	for range 2000 {
		writes += w.reconcile()
		for i := range w.domains {
			for _, what := range []int{1, 2, 3, 4, 4, 4} {
				calls := []int{i, what}
				w.step(func(int) int { next := calls[0]; calls = calls[1:]; return next })
			}
		}
	}
	for _, d := range w.domains {
		if d.fresh != d.replicas {
			t.Errorf("%d of %d Pods are updated", d.fresh, d.replicas)
		}
	}
	t.Logf("%d writes for 1000 Pods", writes)
	if writes > 60 {
		t.Errorf("%d writes for 1000 Pods of 10 subsets", writes)
	}
}
