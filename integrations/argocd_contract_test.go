package integrations

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestScriptsOfArgoCDFindTheirFields: Argo CD carries health scripts of its own for some of our kinds, which take a count that is missing
// for something else than 0. So the counts that they read are there in each status, also when they are 0.
func TestScriptsOfArgoCDFindTheirFields(t *testing.T) {
	for name, tc := range map[string]struct {
		status any
		fields []string
	}{
		"CloneSet": {appsv1beta1.CloneSetStatus{}, []string{
			"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas",
			"expectedUpdatedReplicas",
		}},
		"StatefulSet": {appsv1beta1.StatefulSetStatus{}, []string{
			"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas",
		}},
		"DaemonSet": {appsv1beta1.DaemonSetStatus{}, []string{
			"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
			"numberUnavailable",
		}},
		"BroadcastJob": {appsv1beta1.BroadcastJobStatus{}, []string{"active", "succeeded", "failed", "desired"}},
	} {
		encoded, err := json.Marshal(tc.status)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range tc.fields {
			if !strings.Contains(string(encoded), fmt.Sprintf("%q:0", field)) {
				t.Errorf("the status of a %s leaves out %s where it is 0", name, field)
			}
		}
	}
	paused := release(rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStatePaused, asIs)
	encoded, err := json.Marshal(paused.Status)
	if err != nil || !strings.Contains(string(encoded), `"canaryStatus":{`) || !strings.Contains(string(encoded), `"currentStepState":"StepPaused"`) {
		t.Errorf("the status of a Rollout is %s, %v", encoded, err)
	}
}
