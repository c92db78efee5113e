package pull

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// rounds are those that are under way, and those whose end has not been seen in the API yet.
type rounds struct {
	puller
	// life ends every round.
	life context.Context
	// slots are as many as pulls may run at the same time; they are given out in the order in which they are asked for.
	slots *semaphore.Weighted
	// changed is called when there is something new to report.
	changed func()

	mu      sync.Mutex
	running map[Round]*running
}

// running is one round under way. Its fields are guarded by the lock of rounds.
type running struct {
	task   Task
	status v1beta1.ImageTagStatus
	cancel context.CancelFunc
}

func newRounds(life context.Context, p puller, maxPulls int, changed func()) *rounds {
	slots := int64(math.MaxInt64)
	if maxPulls > 0 {
		slots = int64(maxPulls)
	}
	return &rounds{life: life, puller: p, slots: semaphore.NewWeighted(slots), changed: changed, running: map[Round]*running{}}
}

// follow begins the rounds that are due and not known yet, in their order, and ends those that are known and not due any more. It reports whether
// any was begun.
func (r *rounds) follow(due []Task) (begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[Round]bool{}
	for _, task := range due {
		wanted[task.Round] = true
		if known := r.running[task.Round]; known != nil {
			known.task = task
			continue
		}
		r.begin(task)
		begun = true
	}
	for round, known := range r.running {
		if !wanted[round] {
			known.cancel()
			delete(r.running, round)
		}
	}
	return begun
}

// begin starts a round. The caller has the lock.
func (r *rounds) begin(task Task) {
	ctx, cancel := context.WithCancel(r.life)
	one := &running{task: task, cancel: cancel, status: v1beta1.ImageTagStatus{
		Tag: task.Tag, Version: task.Version, Phase: v1beta1.ImagePhaseWaiting,
	}}
	if !task.Began.IsZero() {
		one.status.StartTime = &metav1.Time{Time: task.Began}
	}
	r.running[task.Round] = one
	// A free slot is taken here, so that the order holds and a round that need not wait never says that it waits.
	free := r.slots.TryAcquire(1)
	if free {
		r.start(one)
	}
	go func() {
		defer cancel()
		if !free {
			if r.slots.Acquire(ctx, 1) != nil {
				return // ended while it waited
			}
			r.edit(func() { r.start(one) })
		}
		defer r.slots.Release(1)
		r.pullRound(ctx, one)
	}()
}

// start notes that a round pulls. The caller has the lock.
func (r *rounds) start(one *running) {
	one.status.Phase = v1beta1.ImagePhasePulling
	if one.status.StartTime == nil {
		one.status.StartTime = r.stamp()
	}
}

func (r *rounds) pullRound(ctx context.Context, one *running) {
	var deadline time.Time
	r.read(func() { deadline = one.task.Deadline(one.status.StartTime.Time) })
	id, err := r.run(ctx, round{
		task: func() (t Task) {
			r.read(func() { t = one.task })
			return t
		},
		tell:     func(message string) { r.edit(func() { one.status.Message = message }) },
		deadline: deadline,
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

// stamp returns the time as the API keeps it, in whole seconds: with more, what was written would never be what was meant.
func (r *rounds) stamp() *metav1.Time { return &metav1.Time{Time: r.now().Truncate(time.Second)} }

func (r *rounds) read(look func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look()
}

// edit changes a round, and has it reported.
func (r *rounds) edit(change func()) {
	r.read(change)
	r.changed()
}

// seen returns what is known of all rounds.
func (r *rounds) seen() map[Round]v1beta1.ImageTagStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[Round]v1beta1.ImageTagStatus{}
	for round, one := range maps.All(r.running) {
		out[round] = one.status
	}
	return out
}
