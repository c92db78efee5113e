// Package lifecycle moves a Pod through its states and holds it at the hooks where its user's own controller has a say.
//
//	PreparingNormal ── Normal ── (PreparingUpdate) ── Updating ── (Updated) ── Normal
//	      └───────────────┴── (PreparingDelete) ── gone
//
// States in brackets are entered only by a Pod that a hook holds. A Pod is hooked when it carries any of the hook's labels or finalizers,
// and released when it carries none; it counts as back in service when it carries all of them.
package lifecycle

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Hooked reports whether the Pod carries any of the hook's labels or finalizers. No hook holds no Pod.
func Hooked(p *corev1.Pod, hook *pub.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if actual, ok := p.Labels[key]; ok && actual == value {
			return true
		}
	}
	return slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return slices.Contains(p.Finalizers, f) })
}

// AllHooked reports whether the Pod carries all of the hook's labels and finalizers. No Pod does where there is no hook.
func AllHooked(p *corev1.Pod, hook *pub.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if actual, ok := p.Labels[key]; !ok || actual != value {
			return false
		}
	}
	return !slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return !slices.Contains(p.Finalizers, f) })
}

// Facts are what a Pod's next state depends on besides the Pod.
type Facts struct {
	Lifecycle *pub.Lifecycle
	// UpdateDone means that no in-place update is under way on the Pod.
	UpdateDone bool
	// AtTarget means that no update is wanted for the Pod.
	AtTarget bool
}

// Next returns the state that the Pod moves to by itself, and whether it moves. Updates and deletions are begun by others.
//
// Wire: a Pod without a hook for updates may pass through Updated in other software; here it goes straight to Normal.
func Next(p *corev1.Pod, f Facts) (pub.LifecycleStateType, bool) {
	lc := hooks(f.Lifecycle)
	inService := pub.LifecycleStateUpdated
	if lc.InPlaceUpdate == nil || AllHooked(p, lc.InPlaceUpdate) {
		inService = pub.LifecycleStateNormal
	}
	state := pod.State(p)
	switch state {
	case pub.LifecycleStatePreparingNormal:
		if lc.PreNormal == nil {
			return pub.LifecycleStateNormal, pod.IsScheduled(p)
		}
		return pub.LifecycleStateNormal, AllHooked(p, lc.PreNormal)
	case pub.LifecycleStatePreparingUpdate:
		return inService, f.AtTarget && f.UpdateDone
	case pub.LifecycleStateUpdating:
		return inService, f.UpdateDone
	case pub.LifecycleStateUpdated:
		return inService, inService != state
	default:
		return state, false
	}
}

// BeforeUpdate returns the state that a Pod to be updated in place moves to, and whether its update may start in it. A Pod that is in that
// state already stays as it is.
func BeforeUpdate(p *corev1.Pod, lifecycle *pub.Lifecycle) (state pub.LifecycleStateType, mayStart bool) {
	hook := hooks(lifecycle).InPlaceUpdate
	switch pod.State(p) {
	case pub.LifecycleStatePreparingDelete:
		// It is to go, not to be updated.
		return pub.LifecycleStatePreparingDelete, false
	case pub.LifecycleStateUpdating:
		// Out of service already: the newer update takes over.
		return pub.LifecycleStateUpdating, true
	case pub.LifecycleStateUpdated:
		// Its user may just have let it back into service, or be about to: it has to be drained again.
		if hook != nil {
			return pub.LifecycleStatePreparingUpdate, false
		}
	default:
		if Hooked(p, hook) {
			return pub.LifecycleStatePreparingUpdate, false
		}
	}
	return pub.LifecycleStateUpdating, true
}

func hooks(lifecycle *pub.Lifecycle) pub.Lifecycle {
	if lifecycle == nil {
		return pub.Lifecycle{}
	}
	return *lifecycle
}

// Enter changes the Pod such that it is in the state since now, and ready or not as the state's hook says. A Pod that was updated and is to
// be updated again gets its hook back, so that its user drains it again.
func Enter(p *corev1.Pod, state pub.LifecycleStateType, lifecycle *pub.Lifecycle, now time.Time) {
	lc := hooks(lifecycle)
	if pod.State(p) == pub.LifecycleStateUpdated && state == pub.LifecycleStatePreparingUpdate && lc.InPlaceUpdate != nil {
		hookAgain(p, lc.InPlaceUpdate)
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	if p.Labels[keys.LifecycleState] != string(state) || p.Annotations[keys.LifecycleTimestamp] == "" {
		p.Labels[keys.LifecycleState] = string(state)
		p.Annotations[keys.LifecycleTimestamp] = now.Format(time.RFC3339)
	}
	switch state {
	case pub.LifecycleStatePreparingDelete:
		markIf(p, lc.PreDelete, preDeleteKey, now)
	case pub.LifecycleStatePreparingUpdate:
		markIf(p, lc.InPlaceUpdate, preUpdateKey, now)
	case pub.LifecycleStateUpdating:
		// Still drained, for as long as the update takes.
	default:
		unmark(p, now, preDeleteKey, preUpdateKey)
	}
}

// Renew says that the Pod is in its state since now, as when it comes into service. The time differs from the one before in any case, by a
// second if need be: a write that is conditional on that one can't be done twice.
func Renew(p *corev1.Pod, now time.Time) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	stamp := now.Format(time.RFC3339)
	if stamp == p.Annotations[keys.LifecycleTimestamp] {
		stamp = now.Add(time.Second).Format(time.RFC3339)
	}
	p.Annotations[keys.LifecycleTimestamp] = stamp
}

func hookAgain(p *corev1.Pod, hook *pub.LifecycleHook) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	maps.Copy(p.Labels, hook.LabelsHandler)
	for _, f := range hook.FinalizersHandler {
		if !slices.Contains(p.Finalizers, f) {
			p.Finalizers = append(p.Finalizers, f)
		}
	}
}
