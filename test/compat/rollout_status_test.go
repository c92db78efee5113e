package compat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestWhatToolsReadOfARollout: Argo CD and others judge a Rollout by these fields, which must be where they are, also when they are empty or 0;
// trap T27.
func TestWhatToolsReadOfARollout(t *testing.T) {
	at := v1beta1.CommonStatus{CurrentStepIndex: 2, NextStepIndex: 3, CurrentStepState: v1beta1.StepStatePaused}
	cases := map[string]struct {
		status v1beta1.RolloutStatus
		path   string
		want   map[string]any
	}{
		"canary": {v1beta1.RolloutStatus{Phase: v1beta1.RolloutPhaseProgressing, CanaryStatus: &v1beta1.CanaryStatus{CommonStatus: at}}, "canaryStatus",
			map[string]any{"currentStepState": "StepPaused", "currentStepIndex": int64(2), "nextStepIndex": int64(3)}},
		"blueGreen": {v1beta1.RolloutStatus{Phase: v1beta1.RolloutPhaseProgressing, BlueGreenStatus: &v1beta1.BlueGreenStatus{CommonStatus: at}}, "blueGreenStatus",
			map[string]any{"currentStepState": "StepPaused", "currentStepIndex": int64(2), "nextStepIndex": int64(3)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.Rollout{Status: tc.status})
			if err != nil {
				t.Fatal(err)
			}
			status := fields["status"].(map[string]any)
			for _, key := range []string{"currentStepIndex", "currentStepState"} { // copies, which are always there
				if _, there := status[key]; !there {
					t.Errorf("status.%s is left out", key)
				}
			}
			if status["phase"] != "Progressing" {
				t.Errorf("status.phase is %v", status["phase"])
			}
			got := map[string]any{}
			for key := range tc.want {
				got[key] = status[tc.path].(map[string]any)[key]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status.%s (-want +got):\n%s", tc.path, diff)
			}
		})
	}
}
