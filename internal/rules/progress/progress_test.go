package progress

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

func TestLine(t *testing.T) {
	for want, p := range map[string]Progress{
		"[####################] 5/5 updated":                                      {Updated: 5, Wanted: 5, Total: 5, Ready: 5},
		"[########------------] 2/5 updated (2 wanted), 1 of these in service: x": {Updated: 2, Wanted: 2, Total: 5, Ready: 1, Message: "x"},
		"[####################] 0 updated, 0 ready":                               {},
		"[#####---------------] step 2/4, 3 updated, 2 ready: waiting for a yes":  {Step: 2, Steps: 4, Updated: 3, Ready: 2, Message: "waiting for a yes"},
	} {
		if got := p.Line(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestCode checks which reason a status tells, and since when.
func TestCode(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	set := func(change func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
		out := &v1beta1.CloneSet{}
		out.Spec.Replicas = ptr.To(int32(2))
		out.Status.Replicas, out.Status.AvailableReplicas, out.Status.UpdatedReplicas = 2, 2, 1
		change(out)
		return out
	}
	condition := func(kind, why, message string) func(*v1beta1.CloneSet) {
		return func(s *v1beta1.CloneSet) {
			s.Status.Conditions = []v1beta1.CloneSetCondition{{
				Type: v1beta1.CloneSetConditionType(kind), Status: corev1.ConditionTrue, Reason: why, Message: message, LastTransitionTime: began,
			}}
		}
	}
	pull := &v1beta1.ImagePullJob{Status: v1beta1.ImagePullJobStatus{StartTime: &began, Desired: 3, Succeeded: 2, Failed: 1, FailedNodes: []string{"n3"}}}
	pulling := &v1beta1.ImagePullJob{Status: v1beta1.ImagePullJobStatus{StartTime: &began, Desired: 3, Succeeded: 2, Active: 1}}
	failed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: began}}}}
	for name, tc := range map[string]struct {
		of    metav1.Object
		want  reason.Code
		dated bool
	}{
		"an update under way":    {set(func(*v1beta1.CloneSet) {}), reason.Updating, false},
		"a spec that nobody saw": {set(func(s *v1beta1.CloneSet) { s.Generation = 2 }), reason.ControllerLag, false},
		"a Pod that holds it":    {set(condition("Waiting", "WaitImagePull", "web-a: x")), reason.WaitImagePull, true},
		"a budget of all":        {set(condition("Waiting", "WaitPUB", "web")), reason.WaitPUB, true},
		"a quota":                {set(condition("FailedScale", "Failed", `pods "web-a" is forbidden: exceeded quota: none`)), reason.QuotaExceeded, true},
		"a pause": {set(func(s *v1beta1.CloneSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{Paused: true}
		}), reason.HeldByPause, false},
		"an update on delete": {set(func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetStrategyType }), reason.OnDelete, false},
		"a new one on delete": {set(func(s *v1beta1.CloneSet) {
			s.Spec.UpdateStrategy.Type, s.Status.Replicas = v1beta1.OnDeleteCloneSetStrategyType, 1
		}), reason.Updating, false},
		"all done":                 {set(func(s *v1beta1.CloneSet) { s.Status.UpdatedReplicas, s.Status.UpdatedAvailableReplicas = 2, 2 }), reason.Nothing, false},
		"images that nodes pull":   {pulling, reason.WaitImagePull, true},
		"images that a node lacks": {pull, reason.Stopped, true},
		"a Job that failed":        {failed, reason.Stopped, true},
		"a Rollout without work":   {&rolloutsv1beta1.Rollout{Status: rolloutsv1beta1.RolloutStatus{Phase: rolloutsv1beta1.RolloutPhaseHealthy}}, reason.Nothing, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Of(tc.of)
			if err != nil {
				t.Fatal(err)
			}
			if p.Code != tc.want || (p.Since != nil) != tc.dated {
				t.Errorf("it is %s since %v, want %s", p.Code, p.Since, tc.want)
			}
		})
	}
	if _, err := Of(&corev1.Pod{}); err == nil {
		t.Error("a Pod has progress")
	}
}
