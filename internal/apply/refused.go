package apply

import (
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// How long an optional creation is not tried again that was refused; twice as long each time.
const (
	firstModesty = 10 * time.Second
	mostModesty  = 10 * time.Minute
)

// refusals remembers optional creations that the API server has refused for what they ask: nothing depends on them, so that nobody is served by
// asking for the same again in every pass.
type refusals struct {
	mu sync.Mutex
	of map[types.UID]map[string]refusal
}

// refusal is what was refused, why, and until when it is left at that.
type refusal struct {
	object plan.Object
	why    string
	until  time.Time
	pause  time.Duration
}

// stands reports whether an action need not be tried now: the same was refused a short while ago.
func (r *refusals) stands(owner types.UID, a plan.Action, now time.Time) bool {
	if !a.Optional || a.Verb != plan.Create {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.of[owner][a.After.GetName()]
	return ok && now.Before(known.until) && equality.Semantic.DeepEqual(known.object, a.After)
}

// note takes the outcome of an action that was tried, and reports whether it has been refused in the same words before.
func (r *refusals) note(owner types.UID, a plan.Action, err error, now time.Time) (again bool) {
	if !a.Optional || a.Verb != plan.Create {
		return false
	}
	name := a.After.GetName()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isRefusal(err) {
		delete(r.of[owner], name)
		return false
	}
	known, ok := r.of[owner][name]
	again = ok && known.why == err.Error()
	known.pause = min(max(firstModesty, 2*known.pause), mostModesty)
	if !again {
		known.pause = firstModesty
	}
	known.object, known.why, known.until = a.After, err.Error(), now.Add(known.pause)
	if r.of == nil {
		r.of = map[types.UID]map[string]refusal{}
	}
	if r.of[owner] == nil {
		r.of[owner] = map[string]refusal{}
	}
	maps.DeleteFunc(r.of[owner], func(_ string, old refusal) bool { return now.Sub(old.until) > mostModesty }) // nobody asks for it any more
	r.of[owner][name] = known
	return again
}

func (r *refusals) forget(owner types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, owner)
}

// isRefusal reports whether the API server has understood what was asked and does not want it.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}
