package build

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// hashOfNginx is what kubelets put on a container main of image nginx:1.
const hashOfNginx = 0x6cf18e95

// ReadingTemplate returns the template of Pods with the label app=web whose container takes annotation conf, which is 2, into its
// environment.
func ReadingTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"conf": "2"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1", Env: []corev1.EnvVar{{
			Name:      "CONF",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conf']"}},
		}}}}},
	}
}

// ReadingPod returns a Pod of that template on node n, at a revision and ready for an hour, of which the node daemon tells that its container
// runs with this value of conf.
func ReadingPod(owner metav1.OwnerReference, update *appsv1.ControllerRevision, runs string, now time.Time) *corev1.Pod {
	template := ReadingTemplate()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "default", UID: "pod", ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{
				"app": "web", appsv1.StatefulSetPodNameLabel: "web-0", appsv1.PodIndexLabel: "0", keys.LifecycleState: "Normal",
				keys.PodTemplateHash: revision.ShortHash(update.Name), appsv1.ControllerRevisionHashLabelKey: update.Name,
			},
			Annotations: map[string]string{"conf": "2", keys.RuntimeContainersMeta: fmt.Sprintf(
				`{"containers":[{"name":"main","containerID":"c://1","hashes":{"plainHash":%d,"extractedEnvFromMetadataHash":%d}}]}`,
				hashOfNginx, inplace.EnvironmentHash([]corev1.EnvVar{{Name: "CONF", Value: runs}}),
			)},
		},
		Spec: template.Spec,
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "nginx:1", ContainerID: "c://1", Ready: true}},
		},
	}
	p.Spec.NodeName = "n"
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, pub.InPlaceUpdateReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: c, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		})
	}
	return p
}
