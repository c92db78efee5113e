// Package apply carries plans out. It is the only package that writes to the API server.
//
// Every write is a patch of what a plan changes, on the condition that the object is still the one that was read; a conflict is never
// retried with the old decision. An owner is not reconciled again before the cache has caught up with its writes (Freshness), and is read
// live after a write with an unknown outcome, so that neither a stale cache nor a lost answer makes anything happen twice.
//
//	executor.go   stages, chains and batches of writes, their outcome, and events
//	slice.go      how long a pass begins writes
//	group.go      goroutines of a pass that are waited for
//	write.go      one write: what is patched, and on what condition
//	server.go     the API server behind it
//	limit.go      how many writes are under way at the same time
//	freshness.go  whether the cache shows our own writes
//	owners.go     what is remembered of an owner between passes; backoff after refusals
//	status.go     when the status of an owner is written
//	budget.go     PodUnavailableBudgets, which may hold writes back
//	metrics.go    metrics
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// writeTimeout bounds one write; its outcome is unknown after that.
const writeTimeout = 30 * time.Second

// Config is what an Executor works with.
type Config struct {
	Writer Writer
	Scheme *runtime.Scheme
	// Seen tells how far the caches have come that plans are made from.
	Seen Seen
	Now  func() time.Time
	// Events is where events go.
	Events record.EventRecorder
	// Parallel is the number of writes under way at the same time for one owner, within the Limit.
	Parallel int
	// Limit bounds the writes under way of all Executors that have it; nil for none.
	Limit *Limit
	// Elsewhere takes over the writes for another cluster, without waiting for them; nil where there is none.
	Elsewhere func(owner plan.Object, cluster string, stage plan.Stage)
	// Controls reports whether an object is the owner's, by which a create that was sent twice is known; nil for one by owner references.
	Controls func(object, owner plan.Object) bool
	// Timed notes when each write began and ended; otherwise nobody asks for it.
	Timed bool
	// Budgets are asked before Pods are taken out of service; nil where there are none.
	Budgets Budgets
}

// Executor carries plans out.
type Executor struct {
	Config
	owners    PerOwner[memory]
	questions questions
}

// Result is what became of an action.
type Result struct {
	Action plan.Action
	// Object is what the server stored; nil after a failure or a deletion.
	Object plan.Object
	Err    error
	// Began and Ended are when it was written; zero without Config.Timed.
	Began, Ended time.Time
}

// Outcome is what became of a plan. Actions that were not tried have no result.
type Outcome struct {
	Results []Result
	// Unfinished means that the time of the pass was up before all writes had begun, or that more was due than the plan wrote. The next
	// pass decides anew about the rest, at once.
	Unfinished bool
}

// Conflict reports whether a write found its object changed: the plan was made from an older state and has to be made anew.
func (o Outcome) Conflict() bool {
	for _, r := range o.Results {
		if apierrors.IsConflict(r.Err) {
			return true
		}
	}
	return false
}

// Err joins the failures of all but optional writes; nil when there are none.
func (o Outcome) Err() error {
	var failures []error
	for _, r := range o.Results {
		if !r.Action.Optional && IsFailure(r.Err) {
			failures = append(failures, r.Err)
		}
	}
	return errors.Join(failures...)
}

// IsFailure reports whether the error of a write is a failure, to be reported and retried with backoff. A conflict is none, as the next
// pass decides anew, nor is the wait for a budget, nor a create in a namespace that is being deleted.
func IsFailure(err error) bool {
	return err != nil && !apierrors.IsConflict(err) && !IsWaiting(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Run carries a plan out for its owner, as far as it comes within the time of a pass.
func (e *Executor) Run(ctx context.Context, owner plan.Object, p plan.Plan) Outcome {
	var out Outcome
	within := newSlice(e.Now)
	for _, stage := range p.Stages {
		results := e.runStage(ctx, owner, stage, within)
		out.Results = append(out.Results, results...)
		if within.isOver() {
			out.Unfinished = true
			return out
		}
		for _, r := range results {
			if r.Err != nil && !r.Action.Optional {
				return out
			}
		}
	}
	out.Unfinished = p.More && slices.ContainsFunc(out.Results, func(r Result) bool { return r.Err == nil })
	return out
}

func (e *Executor) runStage(ctx context.Context, owner plan.Object, stage plan.Stage, within *slice) []Result {
	var creates, deletions, others plan.Stage
	elsewhere := map[string]plan.Stage{}
	for _, chain := range stage {
		switch first := chain[0]; {
		case first.Cluster != "":
			elsewhere[first.Cluster] = append(elsewhere[first.Cluster], chain)
		case first.Verb == plan.Create && !first.Optional: // one that fails must not slow the others down
			creates = append(creates, chain)
		case first.Verb == plan.Delete: // of which more may be under way
			deletions = append(deletions, chain)
		default:
			others = append(others, chain)
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(elsewhere)) {
		e.Elsewhere(owner, cluster, elsewhere[cluster])
	}
	if e.Parallel <= 1 {
		results := e.runAll(ctx, owner, append(others, deletions...), within)
		return append(results, e.runCreates(ctx, owner, creates, within)...)
	}
	var results, deleted, created []Result
	var running Group
	running.Go(func() { results = e.runAll(ctx, owner, others, within) })
	running.Go(func() { deleted = e.runAll(ctx, owner, deletions, within) })
	running.Go(func() { created = e.runCreates(ctx, owner, creates, within) })
	running.Wait()
	return slices.Concat(results, deleted, created)
}

// runCreates starts with one chain and doubles with each batch that succeeds: when a quota or an admission rule refuses the Pods, one
// request finds out instead of thousands. The next stage of the same owner goes on where this one came to.
func (e *Executor) runCreates(ctx context.Context, owner plan.Object, creates plan.Stage, within *slice) []Result {
	var results []Result
	for len(creates) > 0 && !within.isOver() {
		batch := 1
		e.owners.Peek(owner.GetUID(), func(m *memory) { batch = max(batch, m.batch) })
		size := min(batch, len(creates))
		tried := e.runAll(ctx, owner, creates[:size], within)
		results = append(results, tried...)
		creates = creates[size:]
		failed := slices.ContainsFunc(tried, func(r Result) bool { return r.Err != nil })
		e.owners.Do(owner.GetUID(), func(m *memory) {
			switch {
			case failed:
				m.batch = 1
			case size == batch:
				m.batch = min(2*batch, maxBatch)
			}
		})
		if failed {
			break
		}
	}
	return results
}

// maxBatch is the most creates that are tried at once, however well all has gone before. More of them make no API server faster, and keep
// others waiting: the scheduler, the kubelets, and our own writes that let the Pods before become ready.
const maxBatch = 32

// runAll runs chains at the same time, as many as Parallel and the Limit allow of what the first one begins with, and returns their results
// in the order of the chains. It begins none when the time is up.
func (e *Executor) runAll(ctx context.Context, owner plan.Object, chains plan.Stage, within *slice) []Result {
	if len(chains) == 0 {
		return nil
	}
	perChain := make([][]Result, len(chains))
	var running Group
	slots := make(chan struct{}, e.Limit.atMost(max(1, e.Parallel), chains[0][0].Verb))
	for i, chain := range chains {
		slots <- struct{}{}
		if !within.begins() {
			break
		}
		run := func() {
			defer func() { <-slots }()
			perChain[i] = e.runChain(ctx, owner, chain)
		}
		if e.Parallel <= 1 {
			run()
		} else {
			running.Go(run)
		}
	}
	running.Wait()
	var results []Result
	for _, r := range perChain {
		results = append(results, r...)
	}
	return results
}

// runChain runs writes one after the other, each from the version that the one before left of the same object. The budgets are asked once
// it is known that the first of them is tried, so that nothing uses a budget that is not written.
func (e *Executor) runChain(ctx context.Context, owner plan.Object, chain plan.Chain) []Result {
	if e.backsOff(owner, chain[0]) {
		return nil
	}
	answered, asked, err := e.turn(ctx, owner, chain)
	if err != nil {
		return []Result{{Action: chain[0], Err: err}}
	}
	defer func() { answered(nil) }()
	if err := e.permit(ctx, chain); err != nil {
		answered(err)
		return []Result{{Action: chain[0], Err: err}}
	}
	if chain[0].Verb != plan.Delete { // of a deletion, the webhook has still to be asked
		answered(nil)
	}
	permitted, cancel := context.WithTimeout(ctx, permittedFor)
	defer cancel()
	var results []Result
	versions := map[types.UID]string{}
	for i, action := range chain {
		if i > 0 && e.backsOff(owner, action) {
			break
		}
		within := ctx
		if i == 0 && asked {
			within = permitted
		}
		result := e.try(within, owner, action, versions)
		answered(result.Err)
		results = append(results, result)
		if result.Err != nil {
			break
		}
	}
	return results
}

func (e *Executor) backsOff(owner plan.Object, action plan.Action) (backsOff bool) {
	e.owners.Peek(owner.GetUID(), func(m *memory) { backsOff = m.backsOff(action, e.Now()) })
	return backsOff
}

// try writes one action, and tells of its outcome. The versions are those that the writes before it left, by UID.
func (e *Executor) try(ctx context.Context, owner plan.Object, action plan.Action, versions map[types.UID]string) Result {
	condition := precondition{}
	if before := action.Before; before != nil {
		condition.uid = before.GetUID()
		if !action.AnyVersion {
			condition.resourceVersion = before.GetResourceVersion()
		}
		if version, ok := versions[condition.uid]; ok && !action.AnyVersion {
			condition.resourceVersion = version
		}
	}
	leave, err := e.Limit.enter(ctx, owner.GetUID(), action.Verb)
	if err != nil {
		return Result{Action: action, Err: fmt.Errorf("%s: waiting for writes before it: %w", describe(action), err)}
	}
	began := e.timed()
	object, err := func() (object plan.Object, err error) {
		defer func() { leave(err) }() // also after a panic
		return e.write(ctx, owner, action, condition)
	}()
	ended := e.timed()
	if err != nil {
		err = fmt.Errorf("%s: %w", describe(action), err)
		if isAmbiguous(err) {
			e.noteUnknown(owner.GetUID())
			if action.Verb == plan.Create {
				e.noteSent(owner.GetUID(), action.After.GetName())
			}
		}
		err = budgetIsWaiting(err)
	} else if object != nil {
		versions[object.GetUID()] = object.GetResourceVersion()
	}
	countWrite(action, err)
	if err == nil {
		e.countUpdate(owner, action)
	}
	again := false
	if mayBackOff(action) {
		e.owners.Do(owner.GetUID(), func(m *memory) { again = m.noteRefused(action, err, e.Now()) })
	}
	if !again {
		e.emit(owner, action, err)
	}
	return Result{Action: action, Object: object, Err: err, Began: began, Ended: ended}
}

// timed returns the time, if anybody asks for that of writes.
func (e *Executor) timed() (now time.Time) {
	if e.Timed {
		now = e.Now()
	}
	return now
}

// emit tells of an action's outcome.
func (e *Executor) emit(owner plan.Object, a plan.Action, err error) {
	on := owner
	if a.OnObject {
		on = a.Object()
	}
	switch {
	case err == nil && a.Event != "":
		e.Events.Event(on, cmp.Or(a.EventType, corev1.EventTypeNormal), a.Event, a.EventMessage)
	case a.FailedEvent != "" && IsFailure(err):
		e.Events.Event(on, corev1.EventTypeWarning, a.FailedEvent, a.FailedPrefix+err.Error())
	}
}

// EmitHolds tells of what a plan holds back, and only of what its owner's plan before did not hold back in the same words.
func (e *Executor) EmitHolds(owner plan.Object, p plan.Plan) {
	now, before := map[plan.Hold]bool{}, map[plan.Hold]bool{}
	for _, h := range p.Holds {
		if h.Event != "" {
			now[h] = true
		}
	}
	remember := e.owners.Do
	if len(now) == 0 {
		remember = e.owners.Peek
	}
	remember(owner.GetUID(), func(m *memory) { before, m.held = m.held, now })
	for h := range now {
		if before[h] {
			continue
		}
		on := runtime.Object(owner)
		if r := h.On; r != (plan.Reference{}) {
			on = &corev1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
		}
		e.Events.Event(on, cmp.Or(h.EventType, corev1.EventTypeWarning), h.Event, h.Why)
	}
}

func describe(a plan.Action) string {
	doing := map[plan.Verb]string{
		plan.Create: "creating", plan.Update: "updating", plan.UpdateStatus: "updating the status of", plan.Resize: "resizing",
		plan.Delete: "deleting", plan.AddContainers: "adding containers to",
	}[a.Verb]
	return fmt.Sprintf("%s %s", doing, a.Object().GetName())
}

// isAmbiguous reports whether a write may have happened although it failed.
func isAmbiguous(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer: a broken connection, a timeout
	}
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.IsUnexpectedServerError(err) || utilnet.IsConnectionReset(err) || status.Status().Code >= 500
}
