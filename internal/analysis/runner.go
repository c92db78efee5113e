package analysis

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "github.com/seed-69ecc383/kruise/internal/rules/analysis"
)

// parallel is how many measurements are made at the same time. The others wait for their turn, which their timeouts do not count.
const parallel = 16

// Options are what a Runner needs.
type Options struct {
	// Addresses says where connections may lead.
	Addresses Addresses
	// Secrets reads the Secrets that checks name from the API server; the account may be allowed to read none.
	Secrets client.Reader
	// Now is the time, by the clock that status goes by.
	Now func() time.Time
}

// Runner makes measurements.
type Runner struct {
	Options
	slots   chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// leads is the context of Start; nil before it and after it has ended.
	leads context.Context
	// ended is called when a measurement of a Rollout has ended.
	ended func(rollout types.NamespacedName)
	of    map[types.UID]map[rules.Key]*measurement
}

// measurement is one that is wanted.
type measurement struct {
	rollout types.NamespacedName
	request rules.Request
	cancel  context.CancelFunc
	// result is nil until it has ended.
	result *rules.Result
}

// New returns a Runner, which measures once it is started.
func New(o Options) *Runner {
	return &Runner{Options: o, slots: make(chan struct{}, parallel), of: map[types.UID]map[rules.Key]*measurement{}}
}

// Asked has the function called when a measurement of a Rollout has ended.
func (r *Runner) Asked(ask func(rollout types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = ask
}

// Start measures what is wanted until the context ends, and returns when nothing is under way any more.
func (r *Runner) Start(ctx context.Context) error {
	r.mu.Lock()
	r.leads = ctx
	for _, all := range r.of {
		for _, m := range all {
			r.begin(m)
		}
	}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.leads = nil // what is wanted from now on is not begun
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// NeedLeaderElection tells the manager to start it only while it leads.
func (r *Runner) NeedLeaderElection() bool { return true }

// Want has exactly these measurements of a Rollout under way. Those that have ended stay known as long as they are wanted.
func (r *Runner) Want(rollout types.NamespacedName, uid types.UID, wanted []rules.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, next := r.of[uid], map[rules.Key]*measurement{}
	for _, request := range wanted {
		key := request.Key()
		m, ok := known[key]
		if !ok {
			m = &measurement{rollout: rollout, request: request, cancel: func() {}}
			r.begin(m)
		}
		next[key] = m
	}
	for key, m := range known {
		if next[key] == nil {
			m.cancel()
		}
	}
	if len(next) == 0 {
		delete(r.of, uid)
		return
	}
	r.of[uid] = next
}

// Forget gives up what is wanted of a Rollout that is gone.
func (r *Runner) Forget(uid types.UID) { r.Want(types.NamespacedName{}, uid, nil) }

// Results returns the measurements of a Rollout that are wanted and have ended.
func (r *Runner) Results(uid types.UID) []rules.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []rules.Result
	for _, m := range r.of[uid] {
		if m.result != nil {
			out = append(out, *m.result)
		}
	}
	return out
}

// begin starts a measurement, if the Runner is started and has not ended. The lock is held.
func (r *Runner) begin(m *measurement) {
	if r.leads == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.leads)
	m.cancel = cancel
	r.running.Go(func() {
		defer cancel()
		r.run(ctx, m)
	})
}

// run makes a measurement, unless it is given up.
func (r *Runner) run(ctx context.Context, m *measurement) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return
	}
	started := metav1.NewTime(r.Now())
	timed, cancel := context.WithTimeout(ctx, rules.Timeout(&m.request.Check))
	defer cancel()
	outcome := r.measure(timed, m)
	if ctx.Err() != nil {
		return
	}
	result := rules.Of(m.request.Key(), started, outcome)
	r.mu.Lock()
	m.result = &result
	ended := r.ended
	r.mu.Unlock()
	if ended != nil {
		ended(m.rollout)
	}
}

func (r *Runner) measure(ctx context.Context, m *measurement) rules.Outcome {
	switch c := &m.request.Check; {
	case c.Prometheus != nil:
		return r.prometheus(ctx, m.rollout.Namespace, c.Prometheus)
	case c.HTTP != nil:
		return r.http(ctx, m.rollout.Namespace, c.HTTP)
	}
	return rules.Inconclusive("the check says nothing to measure")
}
