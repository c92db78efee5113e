// Package lifecycle moves a Pod through its states and holds it at the hooks where its user's own controller has a say.
//
//	PreparingNormal ── Normal ── (PreparingUpdate) ── Updating ── (Updated) ── Normal
//	      └───────────────┴── (PreparingDelete) ── gone
//
// States in brackets are entered only by a Pod that a hook holds. A Pod is hooked when it carries any of the hook's labels or finalizers,
// and released when it carries none; it counts as back in service when it carries all of them.
package lifecycle

import (
	"cmp"
	"encoding/json"
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

// The keys under which hooks keep a Pod out of service.
const (
	userAgent    = "Lifecycle"
	preDeleteKey = "preDeleteHook"
	preUpdateKey = "preUpdateHook"
)

// Mark is one reason for which a Pod is kept out of service. Several writers share the condition KruisePodReady: its message is the list of
// their marks, and it is True only while the list is empty.
//
// Wire: the message is JSON that other software reads and adds to.
type Mark struct {
	// UserAgent names the writer, and Key its reason.
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// MarksNotReady reports whether a hook for deletions or updates takes the Pods that it holds out of service.
func MarksNotReady(lifecycle *pub.Lifecycle) bool {
	lc := hooks(lifecycle)
	return marksNotReady(lc.PreDelete) || marksNotReady(lc.InPlaceUpdate)
}

func marksNotReady(hook *pub.LifecycleHook) bool { return hook != nil && hook.MarkPodNotReady }

// NeedsFirstReady reports whether the readiness gate of hooks has no condition on the Pod yet.
func NeedsFirstReady(p *corev1.Pod) bool {
	return pod.HasReadinessGate(p, pub.KruisePodReady) && pod.Condition(p, pub.KruisePodReady) == nil
}

// FirstReady opens the gate of hooks on a new Pod.
func FirstReady(p *corev1.Pod, now time.Time) {
	pod.SetGate(p, corev1.PodCondition{Type: pub.KruisePodReady, Status: corev1.ConditionTrue}, now)
}

func markIf(p *corev1.Pod, hook *pub.LifecycleHook, key string, now time.Time) {
	if !marksNotReady(hook) || !pod.HasReadinessGate(p, pub.KruisePodReady) {
		return
	}
	Hold(p, Mark{userAgent, key}, now)
}

// Hold keeps a Pod that has the gate out of service until the mark is released.
func Hold(p *corev1.Pod, m Mark, now time.Time) {
	marks := marksOn(p)
	if !slices.Contains(marks, m) {
		marks = append(marks, m)
	}
	setMarks(p, marks, now)
}

// IsHeld reports whether the mark keeps the Pod out of service.
func IsHeld(p *corev1.Pod, m Mark) bool {
	return slices.Contains(marksOn(p), m)
}

// Release takes a mark off; the Pod comes back into service when no other is left.
func Release(p *corev1.Pod, m Mark, now time.Time) {
	if marks := marksOn(p); slices.Contains(marks, m) {
		setMarks(p, slices.DeleteFunc(marks, func(other Mark) bool { return other == m }), now)
	}
}

func unmark(p *corev1.Pod, now time.Time, marked ...string) {
	marks := marksOn(p)
	left := slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool {
		return m.UserAgent == userAgent && slices.Contains(marked, m.Key)
	})
	if len(left) != len(marks) {
		setMarks(p, left, now)
	}
}

// HeldFor returns the keys for which a writer keeps the Pod out of service.
func HeldFor(p *corev1.Pod, userAgent string) (keys []string) {
	for _, m := range marksOn(p) {
		if m.UserAgent == userAgent {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// marksOn returns the marks on a Pod. A message that can't be read holds none: whoever wrote it opens and closes the gate as it likes.
func marksOn(p *corev1.Pod) []Mark {
	var marks []Mark
	if c := pod.Condition(p, pub.KruisePodReady); c != nil && c.Message != "" {
		if err := json.Unmarshal([]byte(c.Message), &marks); err != nil {
			return nil
		}
	}
	return marks
}

func setMarks(p *corev1.Pod, marks []Mark, now time.Time) {
	slices.SortFunc(marks, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	message := []byte("[]")
	if len(marks) > 0 {
		encoded, err := json.Marshal(marks)
		if err != nil {
			panic("encoding marks: " + err.Error()) // strings can be encoded
		}
		message = encoded
	}
	c := corev1.PodCondition{Type: pub.KruisePodReady, Status: corev1.ConditionTrue, Message: string(message)}
	if len(marks) > 0 {
		c.Status = corev1.ConditionFalse
	}
	pod.SetGate(p, c, now)
}
