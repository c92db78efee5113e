package pull

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// rounds are those that have not ended, and those whose end is not in the cache yet.
type rounds struct {
	puller
	// ctx ends every round.
	ctx context.Context
	// turns grant the slots of pulls.
	turns *turns
	// changed is called when a status has changed.
	changed func()

	mu      sync.Mutex
	running map[Round]*running
}

// running is one round. The lock of rounds guards its fields.
type running struct {
	task   Task
	status v1beta1.ImageTagStatus
	cancel context.CancelFunc
}

func newRounds(ctx context.Context, p puller, maxPulls int, changed func()) *rounds {
	return &rounds{ctx: ctx, puller: p, turns: newTurns(maxPulls), changed: changed, running: map[Round]*running{}}
}

// follow starts the rounds that are due, in their order, and ends those that are not due any more. It reports whether it has started any.
func (r *rounds) follow(due []Task) (started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[Round]bool{}
	for _, task := range due {
		wanted[task.Round] = true
		if known := r.running[task.Round]; known != nil {
			known.task = task
			continue
		}
		r.start(task)
		started = true
	}
	for round, known := range r.running {
		if !wanted[round] {
			known.cancel()
			delete(r.running, round)
		}
	}
	return started
}

// start starts a round. The caller holds the lock.
func (r *rounds) start(task Task) {
	ctx, cancel := context.WithCancel(r.ctx)
	one := &running{task: task, cancel: cancel, status: v1beta1.ImageTagStatus{
		Tag: task.Tag, Version: task.Version, Phase: v1beta1.ImagePhaseWaiting,
	}}
	if !task.Began.IsZero() {
		one.status.StartTime = &metav1.Time{Time: task.Began}
	}
	r.running[task.Round] = one
	// The slot is requested here, so that the order holds and a round that need not wait never has the phase Waiting.
	slot, granted := r.turns.request(task.namespace())
	if granted {
		r.setPulling(one)
	}
	go func() {
		defer cancel()
		if !granted {
			if !r.turns.wait(ctx, slot) {
				r.turns.release(slot)
				return // ended while it waited
			}
			r.edit(func() { r.setPulling(one) })
		}
		r.pullRound(ctx, one, slot)
	}()
}

// setPulling gives a round the phase Pulling. The caller holds the lock.
func (r *rounds) setPulling(one *running) {
	one.status.Phase = v1beta1.ImagePhasePulling
	if one.status.StartTime == nil {
		one.status.StartTime = r.stamp()
	}
}

// pullRound pulls with a slot, which it releases.
func (r *rounds) pullRound(ctx context.Context, one *running, slot *turn) {
	defer func() { r.turns.release(slot) }()
	var deadline time.Time
	r.read(func() { deadline = one.task.Deadline(one.status.StartTime.Time) })
	id, err := r.run(ctx, round{
		task: func() (t Task) {
			r.read(func() { t = one.task })
			return t
		},
		failed:   func(message string) { r.edit(func() { one.status.Message = message }) },
		deadline: deadline,
		yield:    func() <-chan struct{} { return slot.yield },
		pause: func(ctx context.Context, d time.Duration) {
			r.turns.release(slot) // others may pull meanwhile
			r.sleep(ctx, d)
			slot, _ = r.turns.request(slot.namespace)
			if !deadline.IsZero() {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline.Sub(r.now()))
				defer cancel()
			}
			r.turns.wait(ctx, slot)
		},
	})
	if ctx.Err() != nil {
		return
	}
	r.edit(func() {
		s := &one.status
		s.CompletionTime = r.stamp()
		if err != nil {
			s.Phase, s.Message = v1beta1.ImagePhaseFailed, err.Error()
			return
		}
		s.Phase, s.Message, s.Progress, s.ImageID = v1beta1.ImagePhaseSucceeded, "", 100, one.task.Repository+"@"+id
	})
}

// stamp returns the time in whole seconds, as the API stores it: otherwise the stored status would always differ.
func (r *rounds) stamp() *metav1.Time { return &metav1.Time{Time: r.now().Truncate(time.Second)} }

func (r *rounds) read(fields func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fields()
}

// edit changes the fields of a round, and has them reported.
func (r *rounds) edit(change func()) {
	r.read(change)
	r.changed()
}

// statuses returns the status of each round.
func (r *rounds) statuses() map[Round]v1beta1.ImageTagStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[Round]v1beta1.ImageTagStatus{}
	for round, one := range r.running {
		out[round] = one.status
	}
	return out
}
