package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// staleRecheck is when to reconcile again although no event has come: for a cache that lags behind our own writes, and after a conflict, both of
// which an event normally ends much sooner.
const staleRecheck = 200 * time.Millisecond

// budgetRecheck is when to ask a budget again that has let no more Pods become unavailable.
const budgetRecheck = time.Second

// Loop reconciles owners of the kind O, about which everything that matters is in an S.
type Loop[O plan.Object, S any] struct {
	// New returns an empty owner.
	New func() O
	// Cache is read on the hot path, Live when the cache can't be trusted.
	Cache, Live observe.Reader
	// Observe makes every read of a pass.
	Observe func(ctx context.Context, reader observe.Reader, owner O) (S, error)
	// Plan decides. It must be pure.
	Plan func(S) plan.Plan
	// Report returns a copy of the owner with the status that it should have. It must be pure.
	Report func(S, plan.Plan, apply.Outcome) O
	// Remember, if there is one, keeps in memory what no object tells, such as when a write last happened.
	Remember func(S, apply.Outcome)
	// WhileCreating, if there is one, decides what can't wait until a pass is over that creates many objects: the readiness of those before. Only
	// writes are done that test themselves that they are due (plan.Action.While). It must be pure.
	WhileCreating func(S) plan.Plan
	// BetweenCreates, if there is one, says when WhileCreating is asked, instead of a clock. It is given the function that does, for calls between
	// the writes of a pass, and returns what is called when the pass is over. An executor that writes one thing at a time needs it.
	BetweenCreates func(run func()) (done func())
	// MinInterval, if there is one, says how long after a pass the next one over the same owner begins at the earliest. Events that come meanwhile
	// are answered by that one. A new spec does not wait.
	MinInterval func(S) time.Duration

	Executor *apply.Executor
	Statuses *apply.Statuses

	next apply.PerOwner[nextPass]
	// These are what a Kind says.
	status  func(S, plan.Plan, apply.Outcome) any
	deleted func(context.Context, types.NamespacedName) (plan.Object, plan.Plan, error)
	forget  func(types.UID)
}

// Reconcile takes one owner one step further.
func (l *Loop[O, S]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	owner := l.New()
	if err := l.Cache.Get(ctx, request.NamespacedName, owner); err != nil {
		if apierrors.IsNotFound(err) && l.deleted != nil {
			return reconcile.Result{}, l.runDeleted(ctx, request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := l.untilNext(owner); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	reader, err := l.reader(ctx, owner)
	if err != nil || reader == nil {
		return reconcile.Result{RequeueAfter: staleRecheck}, err
	}
	if !reader.Indexed {
		cached := owner.GetUID()
		owner = l.New()
		if err := reader.Get(ctx, request.NamespacedName, owner); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if owner.GetUID() != cached {
			// Another owner has the name by now, of which the cache will tell.
			return reconcile.Result{RequeueAfter: staleRecheck}, nil
		}
	}
	seen, err := l.Observe(ctx, *reader, owner)
	switch {
	case errors.Is(err, observe.ErrOutdated):
		return reconcile.Result{RequeueAfter: staleRecheck}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("observing: %w", err)
	}
	if !reader.Indexed {
		l.Executor.NoteReadLive(owner.GetUID())
	}
	decided := l.Plan(seen)
	logPlan(ctx, decided)
	outcome := l.run(ctx, owner, decided)
	decided.Holds = append(decided.Holds, outcome.Waits()...)
	l.Executor.EmitHolds(owner, decided)
	if l.Remember != nil {
		l.Remember(seen, outcome)
	}
	wait, err := l.Statuses.Write(ctx, owner, l.report(owner, seen, decided, outcome))
	l.delayNext(owner, seen, wait)
	return result(decided, outcome, wait, err)
}

// report returns the owner with the status that it should have.
func (l *Loop[O, S]) report(owner O, seen S, decided plan.Plan, outcome apply.Outcome) O {
	switch {
	case l.Report != nil:
		return l.Report(seen, decided, outcome)
	case l.status != nil:
		after := reflect.New(reflect.TypeOf(owner).Elem())
		after.Elem().Set(reflect.ValueOf(owner).Elem())
		after.Elem().FieldByName("Status").Set(reflect.ValueOf(l.status(seen, decided, outcome)))
		return after.Interface().(O)
	default:
		return owner
	}
}

// runDeleted does what is left to do where there is no owner.
func (l *Loop[O, S]) runDeleted(ctx context.Context, name types.NamespacedName) error {
	object, decided, err := l.deleted(ctx, name)
	if err != nil {
		return fmt.Errorf("reading what a deleted owner left: %w", err)
	}
	if decided.Empty() {
		return nil
	}
	return l.Executor.Run(ctx, object, decided).Err()
}

// nextPass is when the next pass over an owner may begin, as long as its spec is of the same generation.
type nextPass struct {
	generation int64
	at         time.Time
}

// untilNext returns how long it is too early for a pass over an owner. It never is for a spec that no pass has seen.
func (l *Loop[O, S]) untilNext(owner O) (wait time.Duration) {
	if l.MinInterval == nil {
		return 0
	}
	l.next.Do(owner.GetUID(), func(next *nextPass) {
		if next.generation == owner.GetGeneration() {
			wait = max(next.at.Sub(l.Executor.Now()), 0)
		}
	})
	return wait
}

// delayNext has the next pass begin no earlier than the minimal interval after this one, or when the status has its turn if that is sooner. Owners
// whose turns follow one another would otherwise write their statuses together, if only their passes are close.
func (l *Loop[O, S]) delayNext(owner O, seen S, statusWait time.Duration) {
	if l.MinInterval == nil {
		return
	}
	interval := l.MinInterval(seen)
	if statusWait > 0 {
		interval = min(interval, statusWait)
	}
	l.next.Do(owner.GetUID(), func(next *nextPass) { *next = nextPass{owner.GetGeneration(), l.Executor.Now().Add(interval)} })
}

// reader returns what the pass reads with; nil while the cache is stale.
func (l *Loop[O, S]) reader(ctx context.Context, owner O) (*observe.Reader, error) {
	fresh, err := l.Executor.Freshness(ctx, owner)
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking how far the cache has come: %w", err)
	case fresh == apply.Stale:
		return nil, nil
	case fresh == apply.Unknown:
		log.FromContext(ctx).Info("Reading live: the cache is late, or the outcome of a write is unknown")
		live := l.Live
		live.Reader = l.Executor.Tracked(owner.GetUID(), live.Reader)
		return &live, nil
	default:
		return &l.Cache, nil
	}
}

// result says when to look again, and what went wrong: in the pass, or with the status.
func result(decided plan.Plan, outcome apply.Outcome, wait time.Duration, statusErr error) (reconcile.Result, error) {
	if err := errors.Join(outcome.Err(), statusErr); err != nil {
		return reconcile.Result{}, err
	}
	if decided.Problem != nil {
		return reconcile.Result{}, reconcile.TerminalError(decided.Problem)
	}
	next := reconcile.Result{RequeueAfter: decided.Recheck}
	switch {
	case outcome.Conflict():
		wait = staleRecheck
	case len(outcome.Waits()) > 0 && (wait == 0 || wait > budgetRecheck):
		wait = budgetRecheck
	}
	if wait > 0 && (next.RequeueAfter == 0 || wait < next.RequeueAfter) {
		next.RequeueAfter = wait
	}
	return next, nil
}

// Forget drops what is kept in memory of an owner that is gone.
func (l *Loop[O, S]) Forget(owner types.UID) {
	l.Executor.Forget(owner)
	l.next.Forget(owner)
	if l.forget != nil {
		l.forget(owner)
	}
}

// logPlan writes a line for a plan that changes something, and at a higher level the plan itself.
func logPlan(ctx context.Context, p plan.Plan) {
	logger := log.FromContext(ctx)
	if !p.Empty() {
		counts := map[plan.Verb]int{}
		for _, a := range p.Actions() {
			counts[a.Verb]++
		}
		logger.Info("Plan", "writes", counts, "holds", len(p.Holds), "recheck", p.Recheck)
	}
	if p.Problem != nil {
		logger.Info("Nothing can be planned", "problem", p.Problem.Error())
	}
	if detailed := logger.V(1); detailed.Enabled() {
		detailed.Info("Plan in full", "plan", p.String())
	}
}
