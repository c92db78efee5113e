package loop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

const (
	// minCreates is the number of creates that make a pass so long that the first objects created are not left waiting for its end.
	minCreates = 10
	// creatingInterval is the time between two reads of what a pass has created so far.
	creatingInterval = 150 * time.Millisecond
	// creatingShare is how many times as long as it takes to decide what is due nothing is read after that: of thousands of objects, it
	// takes longer.
	creatingShare = 10
)

// run carries a plan out. While it creates many objects, what WhileCreating says is carried out beside it.
//
// A new Pod's readiness gate is opened once the Pod has a node. If that waited for the creation of hundreds of others, the containers would
// run before, and each Pod would cost its kubelet a report more and its users the time. Creating fewer Pods in a pass is no way out: the
// last of them would be the later for it.
func (l *Loop[O, S, T]) run(ctx context.Context, owner O, decided plan.Plan) apply.Outcome {
	if l.WhileCreating == nil || l.BetweenCreates == nil && (l.Executor.Parallel <= 1 || countCreates(decided) < minCreates) {
		return l.Executor.Run(ctx, owner, decided)
	}
	side := &sideRun[O, S, T]{Loop: l, owner: owner, touched: touchedBy(decided)}
	var outcome apply.Outcome
	if l.BetweenCreates != nil {
		done := l.BetweenCreates(func() { _ = side.runOnce(ctx) })
		outcome = l.Executor.Run(ctx, owner, decided)
		done()
	} else {
		var running apply.Group
		done := make(chan struct{})
		running.Go(func() {
			defer close(done)
			outcome = l.Executor.Run(ctx, owner, decided)
		})
		running.Go(func() { side.runUntil(ctx, done) })
		running.Wait()
	}
	outcome.Results = append(outcome.Results, side.results...)
	return outcome
}

func countCreates(p plan.Plan) int {
	n := 0
	for _, a := range p.Actions() {
		if a.Verb == plan.Create {
			n++
		}
	}
	return n
}

// sideRun carries out what can't wait until a pass is over. The cache does not show all that this very pass has written, so it makes only
// writes that test themselves that they are still due, to objects that the pass has not touched.
type sideRun[O plan.Object, S, T any] struct {
	*Loop[O, S, T]
	owner   O
	touched map[types.UID]bool
	results []apply.Result
	// ended says that reading failed, which leaves the rest to the next pass.
	ended bool
}

func touchedBy(decided plan.Plan) map[types.UID]bool {
	touched := map[types.UID]bool{}
	for _, a := range decided.Actions() {
		if a.Before != nil {
			touched[a.Before.GetUID()] = true
		}
	}
	return touched
}

func (r *sideRun[O, S, T]) runUntil(ctx context.Context, done <-chan struct{}) {
	wait := creatingInterval
	for !r.ended {
		select {
		case <-done:
			return
		case <-time.After(wait):
			wait = max(creatingInterval, creatingShare*r.runOnce(ctx))
		}
	}
}

// runOnce reads, and writes what is due. It returns how long it took to find that out.
func (r *sideRun[O, S, T]) runOnce(ctx context.Context) (deciding time.Duration) {
	if r.ended {
		return 0
	}
	began := time.Now()
	seen, err := r.Read(ctx, r.reads(r.cached, r.owner.GetUID()), r.owner)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Leaving the rest to the next pass", "why", err.Error())
		r.ended = true
		return 0
	}
	due := selfTesting(r.WhileCreating(seen), r.touched)
	deciding = time.Since(began)
	r.results = append(r.results, r.Executor.Run(ctx, r.owner, due).Results...)
	return deciding
}

// selfTesting returns the part of a plan whose writes test themselves that they are due, to objects that have not been touched, and notes
// what it touches.
func selfTesting(p plan.Plan, touched map[types.UID]bool) plan.Plan {
	var stage plan.Stage
	for _, s := range p.Stages {
		for _, chain := range s {
			if len(chain) != 1 || chain[0].While == "" || touched[chain[0].Before.GetUID()] {
				continue
			}
			touched[chain[0].Before.GetUID()] = true
			stage = append(stage, chain)
		}
	}
	return plan.Plan{Summary: p.Summary, Stages: []plan.Stage{stage}}
}
