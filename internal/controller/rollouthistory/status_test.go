package rollouthistory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

func podOf(name, release, batch string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{keys.RolloutID: release, keys.RolloutBatchID: batch}}}
	p.Spec.NodeName, p.Status.PodIP = "node-of-"+name, "10.0.0.1"
	return p
}

func TestStatus(t *testing.T) {
	h := &v1alpha1.RolloutHistory{}
	h.Spec.Rollout.RolloutID = "7"
	leaving := podOf("g", "7", "1")
	leaving.DeletionTimestamp = &metav1.Time{}
	v := State{History: h, Objects: steer.Objects{Pods: []*corev1.Pod{
		podOf("a", "7", "10"), podOf("b", "7", "1"), podOf("c", "6", "1"), podOf("d", "7", "2"), podOf("e", "7", "1"), podOf("f", "7", ""), leaving,
	}}}
	info := func(name string) v1alpha1.CanaryStepPodInfo {
		return v1alpha1.CanaryStepPodInfo{Name: name, IP: "10.0.0.1", NodeName: "node-of-" + name}
	}
	want := v1alpha1.RolloutHistoryStatus{Phase: "completed", CanarySteps: []v1alpha1.CanaryStepInfo{
		{CanaryStepIndex: 1, Pods: []v1alpha1.CanaryStepPodInfo{info("b"), info("e")}},
		{CanaryStepIndex: 2, Pods: []v1alpha1.CanaryStepPodInfo{info("d")}},
		{CanaryStepIndex: 10, Pods: []v1alpha1.CanaryStepPodInfo{info("a")}},
	}}
	got := Status(v, plan.Plan{}, apply.Outcome{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	h.Status, v.Objects.Pods = got, nil
	if diff := cmp.Diff(want, Status(v, plan.Plan{}, apply.Outcome{})); diff != "" {
		t.Errorf("a record has changed (-want +got):\n%s", diff)
	}
}
