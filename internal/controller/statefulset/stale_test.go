package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// readingSnapshot is a StatefulSet with one Pod at its revision, which has annotation conf=2 as the template, in the environment of its container.
// The node daemon tells that the container runs with another value of it.
func readingSnapshot(t *testing.T, runs string) Snapshot {
	t.Helper()
	// hashOfNginx is what kubelets put on a container main of image nginx:1.
	const hashOfNginx = 0x6cf18e95
	one := int32(1)
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Replicas = &one
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
	}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"conf": "2"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1", Env: []corev1.EnvVar{{
			Name:      "CONF",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conf']"}},
		}}}}},
	}
	s := Snapshot{Set: set, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.Options.InPlace.EnvFromMetadata = true

	owner := *metav1.NewControllerRef(set, kind())
	history, err := readHistory(s, owner)
	if err != nil {
		t.Fatal(err)
	}
	s.Revisions = []*appsv1.ControllerRevision{history.Update}
	hash := inplace.EnvironmentHash([]corev1.EnvVar{{Name: "CONF", Value: runs}})
	ready := []corev1.PodCondition{}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, pub.InPlaceUpdateReady, corev1.PodReady} {
		ready = append(ready, corev1.PodCondition{
			Type: c, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.Now.Add(-time.Hour)),
		})
	}
	s.Pods = []*corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "default", UID: "pod", ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{
				"app": "web", appsv1.StatefulSetPodNameLabel: "web-0", appsv1.PodIndexLabel: "0", keys.LifecycleState: "Normal",
				keys.PodTemplateHash:                  revision.ShortHash(history.Update.Name),
				appsv1.ControllerRevisionHashLabelKey: history.Update.Name,
			},
			Annotations: map[string]string{"conf": "2", keys.RuntimeContainersMeta: fmt.Sprintf(
				`{"containers":[{"name":"main","containerID":"c://1","hashes":{"plainHash":%d,"extractedEnvFromMetadataHash":%d}}]}`,
				hashOfNginx, hash,
			)},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: ready,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "nginx:1", ContainerID: "c://1", Ready: true}},
		},
	}}
	s.Pods[0].Spec.NodeName = "n"
	s.Pods[0].Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	return s
}

// TestAPodThatRunsWithAnOldValueIsUpdated: somebody gave the Pod the value by hand before the template got it. Its labels say that it is
// updated; what its container runs with decides.
func TestAPodThatRunsWithAnOldValueIsUpdated(t *testing.T) {
	for runs, updated := range map[string]int32{"1": 0, "2": 1} {
		v := Classify(readingSnapshot(t, runs))
		p := Plan(v)
		if got := Status(v, p, apply.Outcome{}).UpdatedReplicas; got != updated {
			t.Errorf("a container runs with %s: %d Pods are updated, want %d", runs, got, updated)
		}
		if restarts := strings.Contains(p.String(), "in place: main environment from metadata"); restarts != (updated == 0) {
			t.Errorf("a container runs with %s, and the plan is:\n%s", runs, p)
		}
	}
}
