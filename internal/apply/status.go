package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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
	// Exact writes a status only over the version of the owner that it was judged from. That is for a status that decides what is done next,
	// such as that a job is over: a write that arrives late must not take it back.
	Exact bool
	// Final, if there is one, reports whether an owner's status says that it has come where it was to go. People and tools wait for just that, so
	// such a status is not kept back. As those before are, there can be no more of it than of them.
	Final func(plan.Object) bool
	// crowd, if there is one, keeps the owners' statuses together within a rate.
	crowd    *crowd
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

// NewCrowdedStatuses returns Statuses for owners of which many may change at once. While they change faster than rate of them a second, no more than
// that are written, each with what is true by then. Not kept back are statuses that speak of a newer spec, nor the first final one of each spec:
// other than those of NewStatuses, later final ones are, as each new Pod may make an owner unfinished and finished again.
func NewCrowdedStatuses(e *Executor, now func() time.Time, rate int) *Statuses {
	s := NewStatuses(e, now)
	s.crowd = newCrowd(rate)
	return s
}

// Write stores the status of after, if it differs from that of before. When it is too early for that, it returns how long to wait instead; a
// status that speaks of a newer spec is never too early, nor is a final one.
func (s *Statuses) Write(ctx context.Context, before, after plan.Object) (wait time.Duration, err error) {
	content, urgent, err := statusChange(before, after)
	if err != nil {
		return 0, err
	}
	if content == nil {
		s.leave(before.GetUID())
		return 0, nil
	}
	if wait := s.wait(after, string(content), urgent); wait > 0 {
		return wait, nil
	}
	version := ""
	if s.Exact {
		version = before.GetResourceVersion()
	}
	encoded, err := json.Marshal(statusPatch(before, content).on(version))
	if err != nil {
		return 0, fmt.Errorf("encoding the status of %s: %w", before.GetName(), err)
	}
	object := named(after)
	err = s.executor.Writer.Patch(ctx, object, string(status), types.JSONPatchType, encoded)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case apierrors.IsConflict(err):
		// Of a patch that goes for any version the API server has only lost a race with other writers too often, and no event may follow.
		return statusInterval, nil
	case apierrors.IsInvalid(err) && s.isReplaced(ctx, before):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("writing the status of %s: %w", before.GetName(), err)
	}
	return 0, s.executor.wrote(before, object)
}

// isReplaced reports whether another object has the owner's name by now.
func (s *Statuses) isReplaced(ctx context.Context, owner plan.Object) bool {
	now := named(owner)
	err := s.executor.Writer.Read(ctx, now)
	return apierrors.IsNotFound(err) || (err == nil && now.GetUID() != owner.GetUID())
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

type operations []operation

// on returns the patch such that it goes for one version of the object only, and for any where version is empty.
func (o operations) on(version string) operations {
	if version == "" {
		return o
	}
	return append(o, operation{Op: "replace", Path: "/metadata/resourceVersion", Value: version})
}

// statusPatch returns the JSON patch that makes this the status. It tests the UID, which the API server ignores in any other patch of a custom
// resource's status.
func statusPatch(before plan.Object, content json.RawMessage) operations {
	return operations{
		{Op: "test", Path: "/metadata/uid", Value: before.GetUID()},
		{Op: "add", Path: "/status", Value: content},
	}
}

// statusChange returns the status of after as JSON, or nil when that of before is the same, and whether it speaks of a newer spec.
func statusChange(before, after plan.Object) (content json.RawMessage, urgent bool, err error) {
	was, is := statusField(before), statusField(after)
	if equality.Semantic.DeepEqual(was, is) {
		return nil, false, nil // as at rest, and far cheaper than to compare what is written
	}
	stored, err := encodeStatus(before, was)
	if err != nil {
		return nil, false, err
	}
	content, err = encodeStatus(after, is)
	if err != nil || bytes.Equal(stored, content) {
		return nil, false, err
	}
	return content, observedGeneration(is) != observedGeneration(was), nil
}

func encodeStatus(object plan.Object, status any) (json.RawMessage, error) {
	encoded, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of %s: %w", object.GetName(), err)
	}
	return encoded, nil
}

// statusField returns the status of an object in its Go type; nil for a kind without.
func statusField(object plan.Object) any { return fieldOf(object, "Status") }

// observedGeneration returns the generation of the spec that a status speaks of; nil for a status that tells of none.
func observedGeneration(status any) any { return fieldOf(status, "ObservedGeneration") }

// fieldOf returns the field of a struct, or of the struct that a pointer leads to; nil for anything without it.
func fieldOf(of any, name string) any {
	value := reflect.ValueOf(of)
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return nil
	}
	field := value.FieldByName(name)
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// wait returns how long it is too early for a status, and takes it for written if it is not.
func (s *Statuses) wait(after plan.Object, status string, urgent bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, now := after.GetUID(), s.now()
	final := s.Final != nil && s.Final(after)
	if s.crowd != nil {
		final = final && s.crowd.isNews(owner, after.GetGeneration())
	}
	urgent = urgent || final
	if s.crowd != nil && !urgent {
		if wait := s.crowd.wait(owner, status, now); wait > 0 {
			return wait
		}
	}
	if wait := s.take(owner, now); wait > 0 && !urgent {
		return wait
	}
	if s.crowd != nil {
		s.crowd.leave(owner)
	}
	return 0
}

// leave notes that an owner's status is what is stored.
func (s *Statuses) leave(owner types.UID) {
	if s.crowd == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crowd.leave(owner)
}

// take uses up one write of the owner's burst, or returns the time until there is one; the caller holds the lock.
func (s *Statuses) take(owner types.UID, now time.Time) time.Duration {
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
	if s.crowd != nil {
		s.crowd.forget(owner)
	}
}
