package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// The status of one owner is written at most once a second in the long run; a short rollout may show each of its steps.
const (
	statusInterval = time.Second
	statusBurst    = 20
)

// Statuses writes the status of owners, no more often than anybody can read it.
type Statuses struct {
	executor *Executor
	now      func() time.Time
	mu       sync.Mutex
	// full is, for each owner, when it will have its whole burst again.
	full map[types.UID]time.Time
}

// NewStatuses returns Statuses that write through the executor.
func NewStatuses(e *Executor, now func() time.Time) *Statuses {
	return &Statuses{executor: e, now: now, full: map[types.UID]time.Time{}}
}

// Write stores the status of after, if it differs from that of before. When it is too early for that, it returns how long to wait instead; a
// status that speaks of a newer spec is never too early.
func (s *Statuses) Write(ctx context.Context, before, after plan.Object) (wait time.Duration, err error) {
	patch, urgent, err := statusPatch(before, after)
	if err != nil || patch == nil {
		return 0, err
	}
	if wait := s.take(before.GetUID()); wait > 0 && !urgent {
		return wait, nil
	}
	object := copyOf(after)
	err = s.executor.Writer.Patch(ctx, object, string(status), types.MergePatchType, patch)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, nil // gone, or recreated under the same name
	case err != nil:
		return 0, fmt.Errorf("writing the status of %s: %w", before.GetName(), err)
	}
	return 0, s.executor.wrote(before, object)
}

// statusPatch returns the merge patch that makes the status that of after, or nil when it is that already, and whether it speaks of a newer
// spec. It names every field, because those that are required must be in the first status even where they are zero.
func statusPatch(before, after plan.Object) (patch []byte, urgent bool, err error) {
	was, err := statusOf(before)
	if err != nil {
		return nil, false, err
	}
	is, err := statusOf(after)
	if err != nil {
		return nil, false, err
	}
	if equality.Semantic.DeepEqual(was, is) {
		return nil, false, nil
	}
	urgent = is["observedGeneration"] != was["observedGeneration"]
	for field := range was {
		if _, kept := is[field]; !kept {
			is[field] = nil
		}
	}
	patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"uid": before.GetUID()}, "status": is})
	return patch, urgent, err
}

func statusOf(object plan.Object) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	var fields struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", object, err)
	}
	return fields.Status, nil
}

// take uses up one write of the owner's burst, or returns the time until there is one.
func (s *Statuses) take(owner types.UID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	full := s.full[owner]
	if full.Before(now) {
		full = now
	}
	if wait := full.Sub(now) - (statusBurst-1)*statusInterval; wait > 0 {
		return wait
	}
	s.full[owner] = full.Add(statusInterval)
	return 0
}

// Forget drops what is known of an owner that is gone.
func (s *Statuses) Forget(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.full, owner)
}
