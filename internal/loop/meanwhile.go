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
	// many is the number of creations that make a pass so long that the first objects created are not left waiting for its end.
	many = 10
	// glance is the time between two looks at what a pass has created so far.
	glance = 150 * time.Millisecond
)

// run carries a plan out. While it creates many objects, what Meanwhile says is carried out beside it.
//
// A new Pod's readiness gate is opened once the Pod has a node. If that waited for the creation of hundreds of others, the containers would run
// before, and each Pod would cost its kubelet a report more and its users the time. Creating fewer Pods in a pass is no way out: the last of them
// would be the later for it.
func (l *Loop[O, S]) run(ctx context.Context, owner O, decided plan.Plan) apply.Outcome {
	if l.Meanwhile == nil || l.Glances == nil && (l.Executor.Parallel <= 1 || creations(decided) < many) {
		return l.Executor.Run(ctx, owner, decided)
	}
	side := &beside[O, S]{Loop: l, owner: owner, touched: touchedBy(decided)}
	var outcome apply.Outcome
	if l.Glances != nil {
		over := l.Glances(func() { side.glance(ctx) })
		outcome = l.Executor.Run(ctx, owner, decided)
		over()
	} else {
		var running apply.Crew
		over := make(chan struct{})
		running.Go(func() {
			defer close(over)
			outcome = l.Executor.Run(ctx, owner, decided)
		})
		running.Go(func() { side.until(ctx, over) })
		running.Wait()
	}
	outcome.Results = append(outcome.Results, side.results...)
	return outcome
}

func creations(p plan.Plan) int {
	n := 0
	for _, a := range p.Actions() {
		if a.Verb == plan.Create {
			n++
		}
	}
	return n
}

// beside carries out what can't wait until a pass is over. The cache does not show all that this very pass has written, so that only writes are
// done which test themselves that they are still due, to objects that the pass has not touched.
type beside[O plan.Object, S any] struct {
	*Loop[O, S]
	owner   O
	touched map[types.UID]bool
	results []apply.Result
	// ended says that no more can be learned from the cache, which leaves the rest to the next pass.
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

// until glances time and again until the pass is over.
func (b *beside[O, S]) until(ctx context.Context, over <-chan struct{}) {
	next := time.NewTicker(glance)
	defer next.Stop()
	for !b.ended {
		select {
		case <-over:
			return
		case <-next.C:
			b.glance(ctx)
		}
	}
}

// glance looks once, and does what is due.
func (b *beside[O, S]) glance(ctx context.Context) {
	if b.ended {
		return
	}
	seen, err := b.Observe(ctx, b.Cache, b.owner)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Leaving the rest to the next pass", "why", err.Error())
		b.ended = true
		return
	}
	b.results = append(b.results, b.Executor.Run(ctx, b.owner, selfTesting(b.Meanwhile(seen), b.touched)).Results...)
}

// selfTesting returns the part of a plan whose writes test themselves that they are due, but for objects that have been touched, and notes whom it
// touches.
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
