package steer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// TestLabelsOfASecondRollback: Pods that an earlier rollback of the same name has brought back are kept by this one, and of none of its batches.
func TestLabelsOfASecondRollback(t *testing.T) {
	const id = "rollback-web-v2"
	o := Objects{Workload: cloneSetOf(8, "100%"), Pods: pods(4, 4), Now: now}
	earlier := map[string]string{keys.RolloutID: id, keys.RolloutBatchID: "1"}
	o.Pods[5] = labelPod(o.Pods[5], earlier, "").After.(*corev1.Pod)
	o.Pods[6] = labelPod(o.Pods[6], map[string]string{keys.NoNeedUpdate: id}, "").After.(*corev1.Pod)
	o.Pods[7] = labelPod(labelPod(o.Pods[7], earlier, "").After.(*corev1.Pod), map[string]string{keys.NoNeedUpdate: id}, "").After.(*corev1.Pod)
	got := map[string][3]string{}
	for _, c := range KeptLabels(cloneSet(), o, id) {
		labels := c.After.GetLabels()
		got[c.After.GetName()] = [3]string{labels[keys.NoNeedUpdate], labels[keys.RolloutID], labels[keys.RolloutBatchID]}
	}
	want := map[string][3]string{"web-004": {id}, "web-005": {id}, "web-007": {id}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels of the Pods that are kept (-want +got):\n%s", diff)
	}
}
