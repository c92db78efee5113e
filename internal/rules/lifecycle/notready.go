package lifecycle

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

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
