package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// staleRecheck is when to reconcile again although no event has come: for a cache that lags behind our own writes, and after a conflict,
// both of which an event normally ends much sooner.
const staleRecheck = 200 * time.Millisecond

// missedRecheck is when to reconcile again although no event has come, after a creation and after a live read: a cache whose watch breaks
// and that lists anew never tells of an object that the pass knew of and that is gone again by then.
const missedRecheck = 30 * time.Second

// Loop is the reconcile of a Kind.
type Loop[O plan.Object, S, T any] struct {
	Kind[O, S, T]
	Runtime
	// BetweenCreates, if there is one, says when WhileCreating is asked, instead of a clock. It is given the function that does, for calls
	// between the writes of a pass, and returns what is called when the pass is over. An executor that writes one thing at a time needs it.
	BetweenCreates func(run func()) (done func())

	cached, live observe.Reader
	statuses     *apply.Statuses[O, T]
	next         apply.PerOwner[nextPass]
	inherited    inherited
	// cachedKinds are the kinds that passes read in the cache.
	cachedKinds []schema.GroupVersionKind
}

// New returns the reconcile of a kind over a cache and the API server itself.
func New[O plan.Object, S, T any](k Kind[O, S, T], r Runtime, cached, live observe.Reader) *Loop[O, S, T] {
	return &Loop[O, S, T]{
		Kind: k, Runtime: r, cached: cached, live: live,
		statuses: apply.NewStatuses(r.Executor, apply.StatusPolicy[O, T]{
			Of: k.StatusOf, Exact: k.Exact, Final: k.Final, Minor: k.Minor, Begins: k.Begins, PerSecond: k.StatusesPerSecond,
		}),
	}
}

// Reconcile takes one owner one step further.
func (l *Loop[O, S, T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	owner := newObject[O]()
	if err := l.cached.Get(ctx, request.NamespacedName, owner); err != nil {
		if apierrors.IsNotFound(err) && l.Deleted != nil {
			return l.runDeleted(ctx, request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := l.untilNext(owner); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	defer l.forgetIfGone(ctx, owner)
	reader, err := l.reader(ctx, owner)
	if err != nil || reader == nil {
		return reconcile.Result{RequeueAfter: staleRecheck}, err
	}
	began := l.traced()
	looked, err := l.decide(ctx, *reader, owner)
	switch {
	case errors.Is(err, errGone):
		return reconcile.Result{}, nil
	case errors.Is(err, observe.ErrOutdated):
		return reconcile.Result{RequeueAfter: staleRecheck}, nil
	case err != nil || looked.wait > 0:
		return reconcile.Result{RequeueAfter: looked.wait}, err
	}
	owner, state, decided := looked.owner, looked.state, looked.plan
	if l.CreatesLive && creates(decided) && l.Executor.HasToReadLive(owner.GetUID()) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	logPlan(ctx, decided)
	var wait time.Duration
	if l.StatusFirst {
		if wait, err = l.storeFirst(ctx, owner, l.Status(state, decided, apply.Outcome{})); err != nil {
			return reconcile.Result{RequeueAfter: wait}, ignoreUnstored(err)
		}
	}
	outcome := l.run(ctx, owner, decided)
	decided.Holds = append(decided.Holds, outcome.Waits()...)
	l.Executor.EmitHolds(owner, decided)
	if l.Remember != nil {
		l.Remember(state, outcome)
	}
	if l.Status != nil && !l.StatusFirst {
		wait, err = l.storeAfter(ctx, owner, l.Status(state, decided, outcome), outcome)
	}
	l.trace(began, state, Pass{Owner: owner, Plan: decided, Outcome: outcome})
	if !outcome.Unfinished {
		l.delayNext(owner, state, wait)
	}
	if looked.live || slices.ContainsFunc(outcome.Results, isCreated) {
		wait = sooner(wait, missedRecheck)
	}
	return result(decided, outcome, wait, err)
}

// errUnstored means that a status was not stored yet.
var errUnstored = errors.New("the status is not stored yet")

// storeFirst stores a status that has to be stored before anything is done. The error is errUnstored if it is too early or too late for
// it; a minor change keeps nothing waiting.
func (l *Loop[O, S, T]) storeFirst(ctx context.Context, owner O, status T) (wait time.Duration, err error) {
	wait, err = l.statuses.Write(ctx, owner, status)
	if err == nil && wait > 0 && !l.statuses.IsMinor(owner, status) {
		err = errUnstored
	}
	return wait, err
}

// storeAfter stores a status when the plan was carried out. If that has changed the owner, an exact one would be refused: the pass that
// sees the change stores it.
func (l *Loop[O, S, T]) storeAfter(ctx context.Context, owner O, status T, done apply.Outcome) (wait time.Duration, err error) {
	if l.Exact && slices.ContainsFunc(done.Results, func(r apply.Result) bool {
		return r.Err == nil && r.Action.Object().GetUID() == owner.GetUID()
	}) {
		return staleRecheck, nil
	}
	return l.statuses.Write(ctx, owner, status)
}

func ignoreUnstored(err error) error {
	if errors.Is(err, errUnstored) {
		return nil
	}
	return err
}

// look is what a pass has read, and what it is to do.
type look[O, S any] struct {
	owner O
	state S
	plan  plan.Plan
	// live means that it was read around the cache.
	live bool
	// wait, if not zero, is when to look again instead of carrying the plan out.
	wait time.Duration
}

// errGone means that the owner is not there any more.
var errGone = errors.New("the owner is gone")

// decide looks with a reader, and live if that is a cache that the plan can't be made from.
func (l *Loop[O, S, T]) decide(ctx context.Context, reader observe.Reader, owner O) (look[O, S], error) {
	looked, err := l.look(ctx, reader, owner)
	if err != nil || !reader.Indexed || !l.inherited.has(owner.GetUID()) || !l.acts(looked) {
		return looked, err
	}
	trusted, wait, err := l.trustCache(ctx, owner)
	if err != nil || trusted || wait > 0 {
		looked.wait = wait
		return looked, err
	}
	return l.look(ctx, l.readLive(ctx, owner), owner)
}

// look reads an owner and all that belongs to it, and plans.
func (l *Loop[O, S, T]) look(ctx context.Context, reader observe.Reader, owner O) (look[O, S], error) {
	if !reader.Indexed {
		cached := owner
		owner = newObject[O]()
		switch err := reader.Get(ctx, client.ObjectKeyFromObject(cached), owner); {
		case apierrors.IsNotFound(err):
			return look[O, S]{}, errGone
		case err != nil:
			return look[O, S]{}, err
		case owner.GetUID() != cached.GetUID():
			// Another owner has the name by now, of which the cache will tell.
			return look[O, S]{}, observe.ErrOutdated
		}
	}
	state, err := l.Read(ctx, l.reads(reader, owner.GetUID()), owner)
	if err != nil {
		return look[O, S]{}, fmt.Errorf("reading: %w", err)
	}
	if !reader.Indexed {
		l.Executor.NoteReadLive(owner.GetUID())
	}
	return look[O, S]{owner: owner, state: state, plan: l.Plan(state), live: !reader.Indexed}, nil
}

func (l *Loop[O, S, T]) reads(reader observe.Reader, owner types.UID) Reads {
	out := Reads{
		Reader: reader, Live: l.Live, Tracked: l.Executor.Tracked(owner, l.live.Reader),
		Now: l.Executor.Now(), Taken: l.Executor.TakenNames(owner), cached: l.cached,
	}
	if owner != "" && l.ownsPods() {
		out.Former = l.Executor.FormerNames(owner)
	}
	return out
}

// runDeleted does what is left to do where there is no owner.
func (l *Loop[O, S, T]) runDeleted(ctx context.Context, name types.NamespacedName) (reconcile.Result, error) {
	object, decided, err := l.Deleted(ctx, l.reads(l.cached, ""), name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading what a deleted owner left: %w", err)
	}
	if decided.Empty() {
		return reconcile.Result{}, nil
	}
	defer l.Executor.Forget(object)
	return result(decided, l.Executor.Run(ctx, object, decided), 0, nil)
}

// nextPass is when the next pass over an owner may begin, as long as its spec is of the same generation.
type nextPass struct {
	generation int64
	at         time.Time
}

// untilNext returns how long it is too early for a pass over an owner. It never is for a spec that no pass has seen.
func (l *Loop[O, S, T]) untilNext(owner O) (wait time.Duration) {
	if l.MinInterval == nil {
		return 0
	}
	l.next.Peek(owner.GetUID(), func(next *nextPass) {
		if next.generation == owner.GetGeneration() {
			wait = max(next.at.Sub(l.Executor.Now()), 0)
		}
	})
	return wait
}

// delayNext has the next pass begin no earlier than the minimal interval after this one, or when the status has its turn if that is sooner.
// Owners whose turns follow one another would otherwise write their statuses together, if only their passes are close.
func (l *Loop[O, S, T]) delayNext(owner O, state S, statusWait time.Duration) {
	if l.MinInterval == nil {
		return
	}
	interval := l.MinInterval(state)
	if statusWait > 0 {
		interval = min(interval, statusWait)
	}
	l.next.Do(owner.GetUID(), func(next *nextPass) { *next = nextPass{owner.GetGeneration(), l.Executor.Now().Add(interval)} })
}

// reader returns what the pass reads with; nil while the cache is stale.
func (l *Loop[O, S, T]) reader(ctx context.Context, owner O) (*observe.Reader, error) {
	fresh, err := l.Executor.Freshness(ctx, owner)
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking how far the cache has come: %w", err)
	case fresh == apply.Stale:
		return nil, nil
	case fresh == apply.Unknown:
		live := l.readLive(ctx, owner)
		return &live, nil
	default:
		return &l.cached, nil
	}
}

// readLive returns what reads around the cache, so that the passes after this one do not believe a cache that is older.
func (l *Loop[O, S, T]) readLive(ctx context.Context, owner O) observe.Reader {
	log.FromContext(ctx).Info("Reading live: the cache is late, or the outcome of a write is unknown")
	live := l.live
	live.Reader = l.Executor.Tracked(owner.GetUID(), live.Reader)
	return live
}

// creates reports whether a plan creates an object.
func creates(decided plan.Plan) bool {
	return slices.ContainsFunc(decided.Actions(), func(a plan.Action) bool { return a.Verb == plan.Create })
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
	budgetWait, waits := outcome.WaitFor()
	switch {
	case outcome.Conflict():
		wait = staleRecheck
	case outcome.Unfinished:
		wait = time.Millisecond
	case waits && (wait == 0 || wait > budgetWait):
		wait = budgetWait
	}
	next.RequeueAfter = sooner(next.RequeueAfter, wait)
	return next, nil
}

// sooner returns the smaller one of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b, 0)
	}
	return min(a, b)
}

func isCreated(r apply.Result) bool { return r.Err == nil && r.Action.Verb == plan.Create }

// Forget drops what is kept in memory of an owner that is gone.
func (l *Loop[O, S, T]) Forget(owner O) {
	l.Executor.Forget(owner)
	l.next.Forget(owner.GetUID())
	l.inherited.forget(owner.GetUID())
	if l.Kind.Forget != nil {
		l.Kind.Forget(owner.GetUID())
	}
	if l.Tracer != nil {
		l.Tracer.Forget(owner.GetUID())
	}
}

// forgetIfGone drops what a pass has noted of an owner that was deleted meanwhile: the event of its deletion came before the notes. A cache
// stores a deletion before it tells of it, so that an owner which is still there now is forgotten with that event.
func (l *Loop[O, S, T]) forgetIfGone(ctx context.Context, owner O) {
	now := newObject[O]()
	err := l.cached.Get(ctx, client.ObjectKeyFromObject(owner), now)
	if apierrors.IsNotFound(err) || err == nil && now.GetUID() != owner.GetUID() {
		l.Forget(owner)
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
