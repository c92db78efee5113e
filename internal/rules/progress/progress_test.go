package progress

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestJudge(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	said := func(reason string) Judgement {
		j := Judgement{Status: corev1.ConditionTrue, Reason: reason, Message: "as before", Since: start}
		if reason == DeadlineExceeded {
			j.Status = corev1.ConditionFalse
		}
		return j
	}
	deadline, endless := int32(60), int32(math.MaxInt32)
	for name, tc := range map[string]struct {
		rollout Rollout
		last    Judgement
		want    string
	}{
		"nobody asks":                            {Rollout{Now: at(1)}, Judgement{}, " after 0s"},
		"nobody asks any more":                   {Rollout{Now: at(1), DeadlineSeconds: &endless}, said("SetUpdated"), " after 0s"},
		"it begins":                              {Rollout{Now: at(5), DeadlineSeconds: &deadline}, Judgement{}, "True SetUpdated since 5s after 1m1s"},
		"it goes on":                             {Rollout{Now: at(5), DeadlineSeconds: &deadline}, said("SetUpdated"), "True SetUpdated since 0s after 56s"},
		"it has come on":                         {Rollout{Now: at(5), DeadlineSeconds: &deadline, Moved: true}, said("SetUpdated"), "True SetUpdated since 5s after 1m1s"},
		"at the deadline it may still come on":   {Rollout{Now: at(60), DeadlineSeconds: &deadline}, said("SetUpdated"), "True SetUpdated since 0s after 1s"},
		"the deadline is over":                   {Rollout{Now: at(61), DeadlineSeconds: &deadline}, said("SetUpdated"), "False ProgressDeadlineExceeded since 61s after 0s"},
		"the deadline was over":                  {Rollout{Now: at(99), DeadlineSeconds: &deadline}, said(DeadlineExceeded), "False ProgressDeadlineExceeded since 0s after 0s"},
		"a longer deadline does not take back":   {Rollout{Now: at(1), DeadlineSeconds: &deadline}, said(DeadlineExceeded), "False ProgressDeadlineExceeded since 0s after 0s"},
		"it comes on after all":                  {Rollout{Now: at(99), DeadlineSeconds: &deadline, Moved: true}, said(DeadlineExceeded), "True SetUpdated since 99s after 1m1s"},
		"a pause does not count":                 {Rollout{Now: at(99), DeadlineSeconds: &deadline, Paused: true}, said("SetUpdated"), "True SetPaused since 99s after 0s"},
		"the time begins anew after a pause":     {Rollout{Now: at(99), DeadlineSeconds: &deadline}, said("SetPaused"), "True SetUpdated since 99s after 1m1s"},
		"what the partition allows is done":      {Rollout{Now: at(99), DeadlineSeconds: &deadline, Reached: true}, said("SetUpdated"), "True ProgressPartitionAvailable since 99s after 0s"},
		"all is done":                            {Rollout{Now: at(99), DeadlineSeconds: &deadline, Complete: true, Paused: true}, said(DeadlineExceeded), "True SetAvailable since 99s after 0s"},
		"what was said at rest is not said anew": {Rollout{Now: at(99), DeadlineSeconds: &deadline, Complete: true}, said("SetAvailable"), "True SetAvailable since 0s after 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.rollout.Kind = "Set"
			now, wait := Judge(tc.rollout, tc.last)
			got := fmt.Sprintf(" after %s", wait)
			if now.Status != "" {
				got = fmt.Sprintf("%s %s since %.0fs after %s", now.Status, now.Reason, now.Since.Sub(start).Seconds(), wait)
			}
			if got != tc.want {
				t.Errorf("Judge() = %q, want %q", got, tc.want)
			}
		})
	}
}
