package apply

import (
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// modesty is how long an object is left alone a write to which was refused, as by a budget or a policy: another one gets its turn meanwhile.
const modesty = 10 * time.Second

// Refusals remembers objects that a write of one verb and concern was refused for, and until when they are left alone.
type Refusals struct {
	Verb    plan.Verb
	Concern plan.Concern

	mu    sync.Mutex
	until map[types.UID]time.Time
}

// Note remembers what was refused in a pass.
func (r *Refusals) Note(done Outcome, now time.Time) {
	for _, result := range done.Results {
		if !IsRefused(result.Err) || result.Action.Concern != r.Concern || result.Action.Verb != r.Verb {
			continue
		}
		r.mu.Lock()
		if r.until == nil {
			r.until = map[types.UID]time.Time{}
		}
		r.until[result.Action.Before.GetUID()] = now.Add(modesty)
		r.mu.Unlock()
	}
}

// Present returns those that are still left alone.
func (r *Refusals) Present(now time.Time) map[types.UID]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.until, func(_ types.UID, until time.Time) bool { return !until.After(now) })
	return maps.Clone(r.until)
}

// IsRefused reports whether the API server understood a write and did not want it: the same write right after would be refused, too.
func IsRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsTooManyRequests(err)
}
