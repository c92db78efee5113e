package promises

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// thorough is how many clusters there are for each in which plans and statuses are checked to be computed purely.
const thorough = 10

// Planner is how a controller plans: a snapshot S is taken as a survey V, and that is planned by.
type Planner[S, V any] struct {
	Take     func(S) V
	Snapshot func(V) S
	Plan     func(V) plan.Plan
}

// In returns what plans in a world. It checks that planning is pure: the same survey gives the same plan, and nothing that was read is
// changed.
func (p Planner[S, V]) In(w *World) func(V) plan.Plan {
	return func(v V) plan.Plan {
		again := func() string { return p.Plan(p.Take(p.Snapshot(v))).String() }
		if os.Getenv("KRUISE_SEED") != "" {
			at := w.Cluster.Revision()
			w.told[at] = append(w.told[at], fmt.Sprintf("   %s plans: %s", w.Cluster.Now().Format("15:04:05.000"), again()))
		}
		if w.Seed%thorough != 0 {
			return p.Plan(v)
		}
		before := encoded(p.Snapshot(v))
		first := again()
		if second := again(); first != second {
			w.problems = append(w.problems, "planning twice differs:\n"+cmp.Diff(first, second))
		}
		planned := p.Plan(v)
		if after := encoded(p.Snapshot(v)); before != after {
			w.problems = append(w.problems, "planning changes what was read:\n"+cmp.Diff(before, after))
		}
		return planned
	}
}

func encoded(snapshot any) string {
	text, err := json.Marshal(snapshot)
	if err != nil {
		panic(err)
	}
	return string(text)
}
