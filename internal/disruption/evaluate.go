package disruption

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

const (
	// maxTries is how often the ledger is tried to be written that others write at the same time.
	maxTries = 4
	// recountAfter is for how long a count of the Pods is believed: a deletion is refused without another one, and permitted as long as the
	// budget is the one that was counted for.
	recountAfter = time.Second
)

// Config is what an Evaluator works with.
type Config struct {
	// Cached knows PodUnavailableBudgets, PodDisruptionBudgets and namespaces; Live reads and writes around the cache.
	Cached client.Reader
	Live   client.Client
	// Count computes the numbers of a budget now, by the Pods that a cache has and by what their workloads want at this moment. CountLive
	// does the same by the Pods that the API server has.
	Count, CountLive func(context.Context, *v1beta1.PodUnavailableBudget) (rules.Numbers, error)
	// Exempt are the names of users whose requests are not evaluated.
	Exempt   []string
	Resizing rules.Resizing
	// Pause is the wait before the ledger is tried to be written again because somebody else was first; it doubles with every further try.
	Pause time.Duration
	Now   func() time.Time
}

// Evaluator decides on requests.
type Evaluator struct {
	Config
	budgets sync.Map // of *memory by client.ObjectKey
}

// New returns an Evaluator.
func New(c Config) *Evaluator { return &Evaluator{Config: c} }

// memory is what is kept of a budget. Who holds its lock evaluates a request; the others under the same budget wait.
type memory struct {
	sync.Mutex
	// written is the budget as it was last written here; nil once the cache has seen it.
	written *v1beta1.PodUnavailableBudget
	// refused is when a count last found that nothing can be deleted, needless when the read was begun by which the API server last said
	// that no Pods are needed.
	refused, needless time.Time
	count             count
}

// count is what the Pods came to at a version of a budget, by a count that began at a time.
type count struct {
	numbers rules.Numbers
	version string
	at      time.Time
}

// Request is what somebody wants to do to a Pod.
type Request struct {
	// Pod is the Pod as it is now.
	Pod *corev1.Pod
	// Unverified means that only the request says that the Pod is so, which anybody can have sent who reaches the webhook. The Pod is read
	// before a budget answers, so that no made-up request uses a budget.
	Unverified bool
	Operation  v1beta1.PubOperation
	// User is who asks.
	User string
	// DryRun has the request evaluated and not recorded.
	DryRun bool
}

// Reason is why a request is refused; empty if it is not.
type Reason string

const (
	// Budget means that fewer Pods would be left available than the budget needs.
	Budget Reason = "Budget"
	// LedgerFull means that too many Pods are in the ledger that have not been seen to go.
	LedgerFull Reason = "LedgerFull"
	// Contended means that others wrote the ledger again and again.
	Contended Reason = "Contended"
	// Kubernetes means that a PodDisruptionBudget would refuse the eviction.
	Kubernetes Reason = "Kubernetes"
)

// Decision is the answer to a request.
type Decision struct {
	// Refused is why the request is refused; empty if it may go on.
	Refused Reason
	// Budget is the budget, with the numbers by which it was evaluated; nil if none was asked.
	Budget *v1beta1.PodUnavailableBudget
	// PodDisruptionBudget is the name of the one that refuses an eviction, with Kubernetes.
	PodDisruptionBudget string
}

// Allowed reports whether the request may go on.
func (d Decision) Allowed() bool { return d.Refused == "" }

// Evaluate decides on a request and, if it is granted, records it. The first of these that holds allows it unrecorded: the Pod or the user
// is exempt; the Pod is not available anyway; its namespace is being deleted; there is no such budget; the budget ignores the Pod, needs
// no Pods, does not guard against this, or has recorded the Pod already.
func (e *Evaluator) Evaluate(ctx context.Context, r Request) (Decision, error) {
	if rules.IsExempt(r.Pod) || slices.Contains(e.Exempt, r.User) {
		return Decision{}, nil
	}
	name := rules.Related(r.Pod.Annotations)
	if name == "" || e.goesWithNamespace(ctx, r.Pod) {
		return Decision{}, nil
	}
	key := client.ObjectKey{Namespace: r.Pod.Namespace, Name: name}
	found, _ := e.budgets.LoadOrStore(key, &memory{})
	pass := &evaluation{Evaluator: e, memory: found.(*memory), key: key, Request: r, came: e.Now()}
	pass.Lock()
	defer pass.Unlock()
	decision, err := pass.run(ctx)
	if apierrors.IsNotFound(err) {
		e.budgets.Delete(key)
		return Decision{}, nil
	}
	return decision, err
}

// goesWithNamespace reports whether a Pod goes with its namespace: everything there is to go, the budget with the Pods. Thousands of Pods
// may go in this way, so nothing is read for it but the cache. A namespace that the cache lacks is not known to be deleted.
func (e *Evaluator) goesWithNamespace(ctx context.Context, p *corev1.Pod) bool {
	n := &corev1.Namespace{}
	return e.Cached.Get(ctx, client.ObjectKey{Name: p.Namespace}, n) == nil && rules.GoesWith(p, n)
}

// NoteBudget drops what is kept of a budget that is gone; after is nil then.
func (e *Evaluator) NoteBudget(before, after *v1beta1.PodUnavailableBudget) {
	if after != nil {
		return
	}
	key := client.ObjectKeyFromObject(before)
	found, known := e.budgets.Load(key)
	if !known {
		return
	}
	kept := found.(*memory)
	kept.Lock()
	defer kept.Unlock()
	if kept.written == nil || kept.written.UID == before.UID { // else it is of another budget, which has taken the name
		e.budgets.Delete(key)
	}
}

// asked returns the budget that a request is to be evaluated by; it has no name if the one that the cache has allows it unrecorded.
func (e *Evaluator) asked(ctx context.Context, r Request) types.NamespacedName {
	key := client.ObjectKey{Namespace: r.Pod.Namespace, Name: rules.Related(r.Pod.Annotations)}
	cached := &v1beta1.PodUnavailableBudget{}
	if e.Cached.Get(ctx, key, cached) == nil {
		if answer, err := (rules.Request{Pod: r.Pod, Operation: r.Operation, Resizing: e.Resizing}).Answer(cached); err == nil &&
			(answer == rules.Free || answer == rules.Needless) {
			return types.NamespacedName{}
		}
	}
	return key
}

// evaluation is that of one request.
type evaluation struct {
	*Evaluator
	*memory
	Request
	key client.ObjectKey
	// came is when the request came.
	came time.Time
	// budget is the newest that is known; live says that it comes from the API server, which was asked at that time.
	budget    *v1beta1.PodUnavailableBudget
	live      bool
	askedLive time.Time
}

// run returns the decision; NotFound if there is no such budget.
func (e *evaluation) run(ctx context.Context) (Decision, error) {
	if err := e.find(ctx); err != nil {
		return Decision{}, err
	}
	backoff := wait.Backoff{Duration: e.Pause, Factor: 2, Jitter: 0.1, Steps: maxTries}
	for range maxTries {
		counts, answer, err := e.answer(ctx)
		switch {
		case err != nil:
			return Decision{}, err
		case answer == rules.Free, answer == rules.Needless: // by numbers that were just counted
			return Decision{Budget: e.budget}, nil
		case answer == rules.Refused:
			return Decision{Refused: Budget, Budget: e.budget}, nil
		case answer == rules.LedgerFull:
			return Decision{Refused: LedgerFull, Budget: e.budget}, nil
		}
		if blocking, err := e.blocking(ctx); blocking != "" || err != nil {
			return Decision{Refused: Kubernetes, Budget: e.budget, PodDisruptionBudget: blocking}, err
		}
		if e.DryRun {
			return Decision{Budget: e.budget}, nil
		}
		err = e.record(ctx, counts)
		if !apierrors.IsConflict(err) {
			return Decision{Budget: e.budget}, err
		}
		if err := pause(ctx, backoff.Step()); err != nil {
			return Decision{}, err
		}
		if err := e.read(ctx); err != nil {
			return Decision{}, err
		}
	}
	return Decision{Refused: Contended, Budget: e.budget}, nil
}

// answer returns the answer by the newest version that is known. Before it refuses, or believes that no Pods are needed, it reads the
// budget live, and counts again where that may help; counts is not nil then. What it grants need not be read: it is written over that
// version.
func (e *evaluation) answer(ctx context.Context) (counts *rules.Counts, answer rules.Answer, err error) {
	answer, err = e.rule().Answer(e.budget)
	if err == nil && answer == rules.Needless {
		answer, err = e.confirmNeedless(ctx)
	}
	if err == nil && answer != rules.Free && e.Unverified {
		answer, err = e.verify(ctx)
	}
	if err != nil || answer == rules.Free || answer == rules.Granted {
		return nil, answer, err
	}
	if answer, err = e.readAndAnswer(ctx); err != nil || !e.needsCount(answer) {
		return nil, answer, err
	}
	return e.recount(ctx)
}

// answerBy answers by these numbers instead of those of the status.
func (e *evaluation) answerBy(numbers rules.Numbers) (rules.Answer, error) {
	by := numbers.For(e.Operation)
	fresh := e.budget.DeepCopy()
	fresh.Status.ObservedGeneration = fresh.Generation
	write(by, &fresh.Status)
	answer, err := e.rule().Answer(fresh)
	if answer == rules.Refused {
		e.refused = e.Now()
		write(by, &e.budget.Status) // for the message of the refusal
	}
	return answer, err
}

func write(c rules.Counts, s *v1beta1.PodUnavailableBudgetStatus) {
	s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed = c.Total, c.Desired, c.Current, c.Allowed
}

// rule returns the request as the rules see it.
func (e *evaluation) rule() rules.Request {
	return rules.Request{Pod: e.Pod, Operation: e.Operation, Resizing: e.Resizing, Now: e.Now()}
}

// find finds the newest version of the budget that is known here, and reads it only if none is.
func (e *evaluation) find(ctx context.Context) error {
	cached := &v1beta1.PodUnavailableBudget{}
	err := e.Cached.Get(ctx, e.key, cached)
	switch {
	case apierrors.IsNotFound(err):
		return e.read(ctx) // the Pod names it: it may be too new for the cache
	case err != nil:
		return fmt.Errorf("reading PodUnavailableBudget %s: %w", e.key, err)
	}
	e.budget = cached
	if e.written == nil {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, e.written.ResourceVersion); err == nil && order >= 0 {
		e.written = nil
	} else {
		e.budget = e.written.DeepCopy()
	}
	return nil
}

// read reads the budget live.
func (e *evaluation) read(ctx context.Context) error {
	asked, found := e.Now(), &v1beta1.PodUnavailableBudget{}
	if err := e.Live.Get(ctx, e.key, found); err != nil {
		return fmt.Errorf("reading PodUnavailableBudget %s: %w", e.key, err)
	}
	e.budget, e.live, e.askedLive = found, true, asked
	return nil
}

// record writes the ledger over the version by which the request was evaluated. Numbers that were counted again are written along, but not
// that they are of the present spec: only the controller knows when the budget is in force everywhere.
func (e *evaluation) record(ctx context.Context, counts *rules.Counts) error {
	next := e.budget.DeepCopy()
	if counts != nil {
		write(*counts, &next.Status)
	}
	e.rule().Record(&next.Status)
	err := e.Live.Status().Patch(ctx, next, client.MergeFromWithOptions(e.budget, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing the ledger of PodUnavailableBudget %s: %w", e.key, err)
	}
	if e.count.version == e.budget.ResourceVersion {
		e.count.version, e.count.numbers.Counts = next.ResourceVersion, e.count.numbers.Less()
	}
	e.written = next
	e.budget = next
	return nil
}

// blocking returns the name of a PodDisruptionBudget that would refuse an eviction, or of one of several, by which the API server never
// evicts; empty if there is none, and for what is no eviction. The API server asks it after us: what we had recorded by then would count
// for nothing.
func (e *evaluation) blocking(ctx context.Context) (string, error) {
	if e.Operation != v1beta1.PubEvictOperation {
		return "", nil
	}
	var list policyv1.PodDisruptionBudgetList
	if err := e.Cached.List(ctx, &list, client.InNamespace(e.Pod.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	first := ""
	for i := range list.Items {
		b := &list.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(e.Pod.Labels)) {
			continue // the API server stores none whose selector can't be read
		}
		if first != "" || b.Status.DisruptionsAllowed <= 0 || b.Status.ObservedGeneration < b.Generation {
			return b.Name, nil
		}
		first = b.Name
	}
	return "", nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
