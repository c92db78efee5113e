package disruption

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

const (
	// mostTries is how often the ledger is tried to be written that others write at the same time.
	mostTries = 4
	// glimpse is for how long a deletion is refused without counting the Pods anew: the last count has just said the same.
	glimpse = time.Second
)

// Config is what a Judge works with.
type Config struct {
	// Cached knows PodUnavailableBudgets and PodDisruptionBudgets; Live reads and writes around the cache.
	Cached client.Reader
	Live   client.Client
	// Survey computes the numbers of a budget anew, by the Pods that are there and by what their workloads want at this moment.
	Survey func(context.Context, *v1beta1.PodUnavailableBudget) (Survey, error)
	// Exempt are the names of users whose requests are not judged.
	Exempt   []string
	Resizing rules.Resizing
	// Pause is the wait before the ledger is tried to be written again because somebody else was first; it doubles with every further try.
	Pause time.Duration
	Now   func() time.Time
}

// Survey is what a budget comes to at a moment.
type Survey struct {
	rules.Counts
	// Surplus says that there are more Pods than there should be: deletions are judged by fewer that are desired.
	Surplus bool
}

// Judge decides on requests.
type Judge struct {
	Config
	benches sync.Map // of *bench by client.ObjectKey
}

// New returns a Judge.
func New(c Config) *Judge { return &Judge{Config: c} }

// bench is where the requests under one budget wait for each other.
type bench struct {
	sync.Mutex
	// written is the budget as it was last written here; nil once the cache has seen it.
	written *v1beta1.PodUnavailableBudget
	// counted is when a survey last found that nothing can be deleted.
	counted time.Time
}

// Request is what somebody wants to do to a Pod.
type Request struct {
	// Pod is the Pod as it is now.
	Pod       *corev1.Pod
	Operation v1beta1.PubOperation
	// User is who asks.
	User string
	// DryRun has the request judged and not recorded.
	DryRun bool
}

// Obstacle is what stands against a request; empty for nothing.
type Obstacle string

const (
	// Budget means that fewer Pods would be left available than the budget needs.
	Budget Obstacle = "Budget"
	// Swamped means that too many Pods are in the ledger that have not been seen to go.
	Swamped Obstacle = "Swamped"
	// Contended means that others wrote the ledger again and again.
	Contended Obstacle = "Contended"
	// Kubernetes means that a PodDisruptionBudget would refuse the eviction.
	Kubernetes Obstacle = "Kubernetes"
)

// Verdict is the answer to a request.
type Verdict struct {
	// Obstacle is what stands against the request; empty if it may go on.
	Obstacle Obstacle
	// Budget is the budget, with the numbers that it was judged by; nil if none was asked.
	Budget *v1beta1.PodUnavailableBudget
	// PodDisruptionBudget is the name of the one that stands against an eviction, with Kubernetes.
	PodDisruptionBudget string
}

// Allowed reports whether the request may go on.
func (v Verdict) Allowed() bool { return v.Obstacle == "" }

// Permit decides on a request and, if it is granted, records it. The first of these that holds lets it pass unrecorded: the Pod or the user is exempt;
// the Pod is not available anyway; there is no such budget; the budget ignores the Pod, needs no Pods, does not guard against this, or has recorded
// the Pod already.
func (j *Judge) Permit(ctx context.Context, r Request) (Verdict, error) {
	if rules.IsExempt(r.Pod) || slices.Contains(j.Exempt, r.User) {
		return Verdict{}, nil
	}
	name := rules.Related(r.Pod.Annotations)
	if name == "" {
		return Verdict{}, nil
	}
	key := client.ObjectKey{Namespace: r.Pod.Namespace, Name: name}
	found, _ := j.benches.LoadOrStore(key, &bench{})
	at := found.(*bench)
	at.Lock()
	defer at.Unlock()
	c := &hearing{Judge: j, bench: at, key: key, Request: r}
	verdict, err := c.hear(ctx)
	if apierrors.IsNotFound(err) {
		j.benches.Delete(key)
		return Verdict{}, nil
	}
	return verdict, err
}

// hearing is one request before the judge, who holds the bench.
type hearing struct {
	*Judge
	*bench
	Request
	key client.ObjectKey
	// budget is the newest that is known; live says that it comes from the API server.
	budget *v1beta1.PodUnavailableBudget
	live   bool
}

// hear returns the verdict; NotFound if there is no such budget.
func (h *hearing) hear(ctx context.Context) (Verdict, error) {
	if err := h.look(ctx); err != nil {
		return Verdict{}, err
	}
	backoff := wait.Backoff{Duration: h.Pause, Factor: 2, Jitter: 0.1, Steps: mostTries}
	for range mostTries {
		counts, answer, err := h.judge(ctx)
		switch {
		case err != nil:
			return Verdict{}, err
		case answer == rules.Free:
			return Verdict{Budget: h.budget}, nil
		case answer == rules.Refused:
			return Verdict{Obstacle: Budget, Budget: h.budget}, nil
		case answer == rules.Swamped:
			return Verdict{Obstacle: Swamped, Budget: h.budget}, nil
		}
		if blocking, err := h.blocking(ctx); blocking != "" || err != nil {
			return Verdict{Obstacle: Kubernetes, Budget: h.budget, PodDisruptionBudget: blocking}, err
		}
		if h.DryRun {
			return Verdict{Budget: h.budget}, nil
		}
		err = h.record(ctx, counts)
		if !apierrors.IsConflict(err) {
			return Verdict{Budget: h.budget}, err
		}
		if err := pause(ctx, backoff.Step()); err != nil {
			return Verdict{}, err
		}
		if err := h.read(ctx); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Obstacle: Contended, Budget: h.budget}, nil
}

// judge answers the request by the newest that is known, and looks at all that is newer before it refuses. counts is not nil if they were computed
// anew.
func (h *hearing) judge(ctx context.Context) (counts *rules.Counts, answer rules.Answer, err error) {
	answer, err = h.asked().Answer(h.budget)
	if err != nil || answer == rules.Free || answer == rules.Granted {
		return nil, answer, err
	}
	if !h.live {
		if err := h.read(ctx); err != nil {
			return nil, "", err
		}
		if answer, err = h.asked().Answer(h.budget); err != nil {
			return nil, "", err
		}
	}
	if !h.isWorthASurvey(answer) {
		return nil, answer, nil
	}
	found, err := h.Survey(ctx, h.budget)
	if err != nil {
		return nil, "", fmt.Errorf("counting the Pods of PodUnavailableBudget %s: %w", h.key, err)
	}
	by := found.Counts
	if found.Surplus && h.Operation == v1beta1.PubDeleteOperation {
		by = by.ForSurplus()
	}
	fresh := h.budget.DeepCopy()
	fresh.Status.ObservedGeneration = fresh.Generation
	write(by, &fresh.Status)
	if answer, err = h.asked().Answer(fresh); answer == rules.Refused {
		h.counted = h.Now()
		write(by, &h.budget.Status) // for the words of the refusal
	}
	return &found.Counts, answer, err
}

// isWorthASurvey reports whether the numbers of the status may be wrong: when they are not of the present spec, and when a workload that wants fewer
// Pods deletes one before the controller has seen that it wants fewer.
func (h *hearing) isWorthASurvey(answer rules.Answer) bool {
	return answer == rules.Unknown ||
		answer == rules.Refused && h.Operation == v1beta1.PubDeleteOperation && h.Now().Sub(h.counted) >= glimpse
}

func write(c rules.Counts, s *v1beta1.PodUnavailableBudgetStatus) {
	s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed = c.Total, c.Desired, c.Current, c.Allowed
}

func (h *hearing) asked() rules.Request {
	return rules.Request{Pod: h.Pod, Operation: h.Operation, Resizing: h.Resizing, Now: h.Now()}
}

// look finds the newest version of the budget that is known here, and reads it only if none is.
func (h *hearing) look(ctx context.Context) error {
	cached := &v1beta1.PodUnavailableBudget{}
	err := h.Cached.Get(ctx, h.key, cached)
	switch {
	case apierrors.IsNotFound(err):
		return h.read(ctx) // the Pod names it: it may be too new for the cache
	case err != nil:
		return fmt.Errorf("reading PodUnavailableBudget %s: %w", h.key, err)
	}
	h.budget = cached
	if h.written == nil {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, h.written.ResourceVersion); err == nil && order >= 0 {
		h.written = nil
	} else {
		h.budget = h.written.DeepCopy()
	}
	return nil
}

// read reads the budget live.
func (h *hearing) read(ctx context.Context) error {
	found := &v1beta1.PodUnavailableBudget{}
	if err := h.Live.Get(ctx, h.key, found); err != nil {
		return fmt.Errorf("reading PodUnavailableBudget %s: %w", h.key, err)
	}
	h.budget, h.live = found, true
	return nil
}

// record writes the ledger on top of the version that was judged by. What was counted anew is written along, but not that it is of the
// present spec: that is for the controller to say, who knows when the budget is in force everywhere.
func (h *hearing) record(ctx context.Context, counts *rules.Counts) error {
	next := h.budget.DeepCopy()
	if counts != nil {
		write(*counts, &next.Status)
	}
	h.asked().Record(&next.Status)
	err := h.Live.Status().Patch(ctx, next, client.MergeFromWithOptions(h.budget, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing the ledger of PodUnavailableBudget %s: %w", h.key, err)
	}
	h.written = next
	h.budget = next
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
