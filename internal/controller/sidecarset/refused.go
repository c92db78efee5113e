package sidecarset

import (
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// modesty is how long a Pod is left alone whose update was refused, as by a budget of its owner's: another Pod gets its turn meanwhile.
const modesty = 10 * time.Second

// refusals remembers Pods whose update was refused, and until when they are left alone.
type refusals struct {
	mu    sync.Mutex
	until map[types.UID]time.Time
}

// note remembers what was refused in a pass.
func (r *refusals) note(done apply.Outcome, now time.Time) {
	for _, result := range done.Results {
		refused := apierrors.IsForbidden(result.Err) || apierrors.IsInvalid(result.Err) || apierrors.IsTooManyRequests(result.Err)
		if result.Err == nil || result.Action.Concern != plan.Rollout || result.Action.Verb != plan.Update || !refused {
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

// present returns those that are still left alone.
func (r *refusals) present(now time.Time) map[types.UID]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.until, func(_ types.UID, until time.Time) bool { return !until.After(now) })
	return maps.Clone(r.until)
}
