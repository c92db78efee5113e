// Package loop is the one reconcile that all controllers share: read, plan, write, report.
//
// A controller is a value of type Kind, a table that says how owners of one type are reconciled:
//
//	func Kind(o Options) loop.Kind[*v1beta1.CloneSet, State, v1beta1.CloneSetStatus] {
//		return loop.Kind[*v1beta1.CloneSet, State, v1beta1.CloneSetStatus]{
//			Name:   "cloneset",
//			Owns:   []client.Object{&corev1.Pod{}},       // whose events ask for a pass over their controller
//			Read:   read(o),                              // every read of a pass, classified
//			Plan:   Plan,                                 // pure: what to write, what to hold back, when to look again
//			Status: Status,                               // pure: what the owner's status should be
//			StatusOf: func(set *v1beta1.CloneSet) *v1beta1.CloneSetStatus { return &set.Status },
//		}
//	}
//
// All files of a controller have the same names: doc.go (the promise), kind.go (the table, the options, which events ask for a pass),
// read.go (the Snapshot, and every read), classify.go (the State: the snapshot classified once), plan.go, status.go. A small controller
// folds them together.
//
// The manager runs a Kind by AddTo. Simulated clusters run it by New, with the same events (Kind.Events). What a controller keeps in memory
// of its owners is made in the function that returns the Kind, so that each start begins with nothing, and is dropped by Forget.
package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Kind says how owners of the type O are reconciled. S is all that a pass knows of one, T the type of its status. Only Name, Read and Plan
// have to be set.
type Kind[O plan.Object, S, T any] struct {
	// Name is the controller's, in metrics and logs.
	Name string
	// Source is the component that its events come from; Name and "-controller" if empty.
	Source string
	// Indexes adds the indexes that Read and Watches use to those that every cache has (observe.AddIndexes).
	Indexes func(context.Context, client.FieldIndexer) error

	// Concerns reports whether an owner that was created, before is nil then, or that changed needs a pass. Without it each does.
	Concerns func(before, after O) bool
	// Owns are types of objects that owners control. Their events ask for a pass over the owner.
	Owns []client.Object
	// Disrupts means that owners take Pods out of service that others own, as many as the state of all these allows.
	Disrupts bool
	// Watches returns the other events that ask for passes. It is given a cache to look owners up in.
	Watches func(cached observe.Reader) []Watch

	// Asked, if there is one, is given the function that asks for passes because of what no cache of the manager tells. It returns at once.
	Asked func(ask func(owner types.NamespacedName))

	// Read makes every read of a pass, and classifies what it found.
	Read func(context.Context, Reads, O) (S, error)
	// Plan decides the next step. It must be pure.
	Plan func(S) plan.Plan
	// Status returns the status that the owner should have; nil for a kind whose status this controller does not write. It must be pure.
	// StatusOf returns where an owner has its status; it is set along with Status.
	Status   func(S, plan.Plan, apply.Outcome) T
	StatusOf func(O) *T
	// Remember keeps in memory what no object tells, such as when a write was last refused. Forget drops what is kept of an owner that is
	// gone.
	Remember func(S, apply.Outcome)
	Forget   func(types.UID)
	// Deleted decides what is written when there is no owner of a name; the object returned stands for the owner.
	Deleted func(context.Context, Reads, types.NamespacedName) (plan.Object, plan.Plan, error)

	// CreatesLive has an owner read live before this process creates the first objects for it: where a second Pod does harm, and its name
	// does not tell that there is one. An earlier process may have created it in its last moment, or it may still belong to another owner
	// in the cache.
	CreatesLive bool

	// StatusFirst stores the status before the plan is carried out, and carries nothing out while it can't be stored: for a status that
	// says where a sequence of writes is. A controller that stops at any point then goes on from there. Such a plan does not write to its
	// owner.
	StatusFirst bool
	// Exact, Final, Minor, Begins and StatusesPerSecond say when the status is written: see apply.StatusPolicy.
	Exact             bool
	Final             func(O) bool
	Minor             func(stored, next *T) bool
	Begins            func(stored, next *T) bool
	StatusesPerSecond int
	// MinInterval is how long after a pass the next one over the same owner begins at the earliest, as by IntervalOf. A new spec does not
	// wait, nor does what a pass has left for want of time.
	MinInterval func(S) time.Duration
	// Release says which release a pass is a part of, by its state and by the owner with the status that the pass has computed. Without it
	// the passes of a kind are not traced.
	Release func(S, O) plan.Release
	// WhileCreating decides what can't wait until a pass is over that creates many objects: the readiness of those before. Only writes are
	// made that test themselves that they are due (plan.Action.While). It must be pure.
	WhileCreating func(S) plan.Plan
}

const (
	// intervalPerPod is how long passes over an owner pause for each of its Pods. A pass takes a few millionths of a second for each, so
	// that the passes over one owner take a small share of a processor however many Pods it has.
	intervalPerPod = 50 * time.Microsecond
	// LongestInterval is the longest pause of IntervalOf: that of 20,000 Pods and more.
	LongestInterval = time.Second
)

// IntervalOf returns how long passes over an owner pause that look at so many Pods, in whole milliseconds: not at all for a few Pods.
//
// Example: over 1,000 Pods there are at most twenty passes a second.
func IntervalOf(pods int) time.Duration {
	return min((time.Duration(pods) * intervalPerPod).Truncate(time.Millisecond), LongestInterval)
}

// Controllers is a Kind of any owners.
type Controllers interface {
	EventSource() string
	AddTo(manager.Manager, Runtime) error
}

// Reads is what a pass reads with.
type Reads struct {
	// Reader is the cache, or the API server where the cache can't be trusted.
	observe.Reader
	// Live reads around the cache. Tracked does the same, and has the next pass wait for a cache that is as new as what was read.
	Live, Tracked client.Reader
	Now           time.Time
	// Taken are the names that the owner could not create objects of, because objects of others have them.
	Taken []string
	// Former are the names of Pods of the owner that are on their way out or gone. New ones get others.
	Former []string

	cached observe.Reader
}

// ReadsOf returns reads that are all made from one snapshot, as those of a forecast are. The snapshot has to know the index ByController.
func ReadsOf(snapshot client.Reader, now time.Time) Reads {
	r := observe.Reader{Reader: snapshot, Indexed: true}
	return Reads{Reader: r, Live: snapshot, Tracked: snapshot, Now: now, cached: r}
}

// Nodes returns all nodes, always from the cache: no controller writes them, and a live list of thousands is dear.
func (r Reads) Nodes(ctx context.Context) ([]*corev1.Node, error) { return r.cached.Nodes(ctx) }

// RevisionsWith returns the revisions of an owner, with the one that its status names, if there is one. The cache of revisions may be older
// than the owner: where it lacks that one, the API server is asked. Without it, new Pods would all be of the new revision.
//
// Revisions of others are among them if Pods are at them that are to be adopted.
func (r Reads) RevisionsWith(
	ctx context.Context, owner metav1.Object, selector labels.Selector, named string, orphans ...*corev1.Pod,
) ([]*appsv1.ControllerRevision, error) {
	namespace, uid := owner.GetNamespace(), owner.GetUID()
	found, err := r.Revisions(ctx, namespace, selector, uid)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, p := range orphans {
		if name := p.Labels[appsv1.ControllerRevisionHashLabelKey]; name != "" {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range slices.Compact(others) {
		var rev appsv1.ControllerRevision
		switch err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &rev); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading revision %s: %w", name, err)
		}
		controller := metav1.GetControllerOfNoCopy(&rev)
		if controller != nil && controller.UID != uid && rev.DeletionTimestamp == nil && selector.Matches(labels.Set(rev.Labels)) {
			found = append(found, &rev)
		}
	}
	isNamed := func(rev *appsv1.ControllerRevision) bool { return rev.Name == named }
	if named == "" || slices.ContainsFunc(found, isNamed) {
		return found, nil
	}
	return observe.Reader{Reader: r.Tracked}.Revisions(ctx, namespace, selector, uid)
}

// Runtime is what a controller runs with.
type Runtime struct {
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of owners reconciled at the same time.
	Workers int
	// Tracer is told what passes come to; nil if nobody asks.
	Tracer Tracer
}

// EventSource is the component that the controller's events come from.
func (k Kind[O, S, T]) EventSource() string {
	if k.Source != "" {
		return k.Source
	}
	return k.Name + "-controller"
}

// AddTo adds the indexes and the controller of a kind to a manager.
func (k Kind[O, S, T]) AddTo(mgr manager.Manager, r Runtime) error {
	if k.Indexes != nil {
		if err := k.Indexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	cached, err := observe.Cached(context.Background(), mgr.GetCache())
	if err != nil {
		return err
	}
	l := New(k, r, cached, observe.Reader{Reader: r.Live})
	ctl, err := controller.New(k.Name, mgr, controller.Options{Reconciler: l, MaxConcurrentReconciles: r.Workers})
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", k.Name, err)
	}
	events, err := l.Events()
	if err != nil {
		return err
	}
	// Sources start when the manager leads.
	if err := ctl.Watch(source.Func(func(context.Context, Queue) error { l.Begin(); return nil })); err != nil {
		return fmt.Errorf("waiting to lead for the controller %s: %w", k.Name, err)
	}
	var deferred []waiting
	for _, watch := range events {
		in := mgr.GetCache()
		if watch.Cache != nil {
			in = watch.Cache
		}
		switch from := source.Kind(in, watch.Object, watch.Handler); {
		case watch.Deferred, watch.For != nil:
			deferred = append(deferred, watch.later(from))
		default:
			err = errors.Join(err, ctl.Watch(from))
		}
	}
	if k.Asked != nil {
		err = errors.Join(err, ctl.Watch(source.Func(func(_ context.Context, q Queue) error {
			k.Asked(func(owner types.NamespacedName) { q.AddAfter(reconcile.Request{NamespacedName: owner}, gather) })
			return nil
		})))
	}
	if len(deferred) > 0 {
		err = errors.Join(err, ctl.Watch(afterFirst(mgr.GetCache(), newObject[O](), deferred)))
	}
	if err != nil {
		return fmt.Errorf("watching for the controller %s: %w", k.Name, err)
	}
	return nil
}

// Events returns all events that ask for passes, those of the owners first.
func (l *Loop[O, S, T]) Events() ([]Watch, error) {
	owner := newObject[O]()
	out := []Watch{l.inheriting(owners(owner, l.Concerns, l.Forget))}
	if len(l.Owns) > 0 {
		gvk, err := apiutil.GVKForObject(owner, l.Executor.Scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T: %w", owner, err)
		}
		for _, object := range l.Owns {
			out = append(out, l.owned(object, gvk.GroupKind()))
		}
	}
	if l.Watches != nil {
		out = append(out, l.Watches(l.cached)...)
	}
	var err error
	if l.cachedKinds, err = kindsOf(out, l.Executor.Scheme); err != nil {
		return nil, err
	}
	if l.Executor.Budgets != nil {
		out = append(out, Affected(&policyv1beta1.PodUnavailableBudget{}, l.Executor.BudgetChanged))
	}
	return out, nil
}

// newObject returns an empty object of a type.
func newObject[O plan.Object]() O {
	return reflect.New(reflect.TypeFor[O]().Elem()).Interface().(O)
}
