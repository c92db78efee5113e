package loop

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

func TestMinInterval(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	owner := func(uid types.UID, generation int64) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation}}
	}
	for name, tc := range map[string]struct {
		owner *corev1.Pod
		after time.Duration
		want  time.Duration
	}{
		"an owner that was looked at a moment ago waits": {owner("a", 1), 100 * time.Millisecond, 200 * time.Millisecond},
		"it does not wait for ever":                      {owner("a", 1), 300 * time.Millisecond, 0},
		"nor later":                                      {owner("a", 1), time.Hour, 0},
		"a new spec does not wait":                       {owner("a", 2), 100 * time.Millisecond, 0},
		"nor does an owner that was never looked at":     {owner("b", 1), 100 * time.Millisecond, 0},
		"nor one that was forgotten":                     {owner("gone", 1), 100 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := begin
			l := New(
				Kind[*corev1.Pod, int, corev1.PodStatus]{MinInterval: func(int) time.Duration { return 300 * time.Millisecond }},
				Runtime{
					Executor: &apply.Executor{Config: apply.Config{Now: func() time.Time { return now }}},
				},
				observe.Reader{},
				observe.Reader{},
			)
			for _, reconciled := range []types.UID{"a", "gone"} {
				l.delayNext(owner(reconciled, 1), 0, 0)
			}
			l.Forget(owner("gone", 1))
			now = begin.Add(tc.after)
			if got := l.untilNext(tc.owner); got != tc.want {
				t.Errorf("untilNext() = %v, want %v", got, tc.want)
			}
		})
	}
}
