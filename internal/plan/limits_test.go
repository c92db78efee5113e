package plan

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpire(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		seconds  *int32
		finished *metav1.Time
		deleted  bool
		recheck  time.Duration
	}{
		"kept for ever":    {nil, &metav1.Time{Time: now.Add(-time.Hour)}, false, 0},
		"not finished":     {new(int32(5)), nil, false, 0},
		"kept for a while": {new(int32(5)), &metav1.Time{Time: now.Add(-2 * time.Second)}, false, 3 * time.Second},
		"over":             {new(int32(5)), &metav1.Time{Time: now.Add(-5 * time.Second)}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := For("")
			b.Expire(&corev1.Pod{}, TTL{Seconds: tc.seconds, Finished: tc.finished, Now: now})
			p := b.Plan()
			deleted := len(p.Actions()) == 1 && p.Actions()[0].Verb == Delete
			if deleted != tc.deleted || p.Empty() == tc.deleted || p.Recheck != tc.recheck {
				t.Errorf("deleted %v, rechecked after %s, want %v, %s:\n%s", deleted, p.Recheck, tc.deleted, tc.recheck, p)
			}
		})
	}
}

func TestUntilDeadline(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		start    *metav1.Time
		deadline *int64
		left     time.Duration
		limited  bool
	}{
		"no deadline":     {&metav1.Time{Time: now}, nil, 0, false},
		"not yet started": {nil, new(int64(60)), time.Minute, true},
		"under way":       {&metav1.Time{Time: now.Add(-20 * time.Second)}, new(int64(60)), 40 * time.Second, true},
		"never":           {nil, new(int64(math.MaxInt64)), math.MaxInt32 * time.Second, true},
		"over":            {&metav1.Time{Time: now.Add(-61 * time.Second)}, new(int64(60)), -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			if left, limited := UntilDeadline(tc.start, tc.deadline, now); left != tc.left || limited != tc.limited {
				t.Errorf("%s left, limited %v, want %s, %v", left, limited, tc.left, tc.limited)
			}
		})
	}
}
