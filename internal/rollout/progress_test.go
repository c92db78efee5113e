package rollout

import (
	"fmt"
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestProgressing(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	said := func(reason string) Condition {
		j := Condition{
			Type:       typeProgressing,
			Status:     corev1.ConditionTrue,
			Reason:     reason,
			Message:    "as before",
			LastUpdate: metav1.NewTime(start),
		}
		if reason == deadlineExceeded {
			j.Status = corev1.ConditionFalse
		}
		return j
	}
	type rollout struct {
		Progress
		Paused          bool
		DeadlineSeconds *int32
		Now             time.Time
	}
	deadline, endless := int32(60), int32(math.MaxInt32)
	for name, tc := range map[string]struct {
		rollout rollout
		last    Condition
		want    string
	}{
		"nobody asks":                            {rollout{Now: at(1)}, Condition{}, " after 0s"},
		"nobody asks any more":                   {rollout{Now: at(1), DeadlineSeconds: &endless}, said("SetUpdated"), " after 0s"},
		"it begins":                              {rollout{Now: at(5), DeadlineSeconds: &deadline}, Condition{}, "True SetUpdated since 5s after 1m1s"},
		"it goes on":                             {rollout{Now: at(5), DeadlineSeconds: &deadline}, said("SetUpdated"), "True SetUpdated since 0s after 56s"},
		"it has come on":                         {rollout{Now: at(5), DeadlineSeconds: &deadline, Progress: Progress{Moved: true}}, said("SetUpdated"), "True SetUpdated since 5s after 1m1s"},
		"at the deadline it may still come on":   {rollout{Now: at(60), DeadlineSeconds: &deadline}, said("SetUpdated"), "True SetUpdated since 0s after 1s"},
		"the deadline is over":                   {rollout{Now: at(61), DeadlineSeconds: &deadline}, said("SetUpdated"), "False ProgressDeadlineExceeded since 61s after 0s"},
		"the deadline was over":                  {rollout{Now: at(99), DeadlineSeconds: &deadline}, said(deadlineExceeded), "False ProgressDeadlineExceeded since 0s after 0s"},
		"a longer deadline does not take back":   {rollout{Now: at(1), DeadlineSeconds: &deadline}, said(deadlineExceeded), "False ProgressDeadlineExceeded since 0s after 0s"},
		"it comes on after all and is late":      {rollout{Now: at(99), DeadlineSeconds: &deadline, Progress: Progress{Moved: true}}, said(deadlineExceeded), "False ProgressDeadlineExceeded since 0s after 0s"},
		"another template begins anew":           {rollout{Now: at(99), DeadlineSeconds: &deadline, Progress: Progress{Moved: true, Restarted: true}}, said(deadlineExceeded), "True SetUpdated since 99s after 1m1s"},
		"a pause ends that it is late":           {rollout{Now: at(99), DeadlineSeconds: &deadline, Paused: true}, said(deadlineExceeded), "True SetPaused since 99s after 0s"},
		"so does what the partition allows":      {rollout{Now: at(99), DeadlineSeconds: &deadline, Progress: Progress{Reached: true}}, said(deadlineExceeded), "True ProgressPartitionAvailable since 99s after 0s"},
		"a pause does not count":                 {rollout{Now: at(99), DeadlineSeconds: &deadline, Paused: true}, said("SetUpdated"), "True SetPaused since 99s after 0s"},
		"the time begins anew after a pause":     {rollout{Now: at(99), DeadlineSeconds: &deadline}, said("SetPaused"), "True SetUpdated since 99s after 1m1s"},
		"what the partition allows is done":      {rollout{Now: at(99), DeadlineSeconds: &deadline, Progress: Progress{Reached: true}}, said("SetUpdated"), "True ProgressPartitionAvailable since 99s after 0s"},
		"all is done":                            {rollout{Now: at(99), DeadlineSeconds: &deadline, Progress: Progress{Complete: true}, Paused: true}, said(deadlineExceeded), "True SetAvailable since 99s after 0s"},
		"what was said at rest is not said anew": {rollout{Now: at(99), DeadlineSeconds: &deadline, Progress: Progress{Complete: true}}, said("SetAvailable"), "True SetAvailable since 0s after 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := Workload{
				Kind:            schema.GroupVersionKind{Kind: "Set"},
				Paused:          tc.rollout.Paused,
				DeadlineSeconds: tc.rollout.DeadlineSeconds,
				Now:             tc.rollout.Now,
			}
			w.History.Update = &appsv1.ControllerRevision{}
			now, wait := w.Progressing(tc.rollout.Progress, tc.last)
			got := fmt.Sprintf(" after %s", wait)
			if now.Status != "" {
				got = fmt.Sprintf("%s %s since %.0fs after %s", now.Status, now.Reason, now.LastUpdate.Sub(start).Seconds(), wait)
			}
			if got != tc.want {
				t.Errorf("Progressing() = %q, want %q", got, tc.want)
			}
		})
	}
}
