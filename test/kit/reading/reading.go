// Package reading makes Pods whose containers read an annotation into their environment, and run with one value of it or another.
package reading

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// Template returns a template with annotation conf=2, which its container main reads into its environment, and label app=web.
func Template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"conf": "2"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1", Env: []corev1.EnvVar{{
			Name:      "CONF",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conf']"}},
		}}}}},
	}
}

// Pod returns a Pod of Template and of a revision, which has been ready on node n since build.Start. The node daemon tells that its
// container runs with a value of the annotation, whatever the annotation is.
func Pod(name string, owner metav1.OwnerReference, update *appsv1.ControllerRevision, runs string) *corev1.Pod {
	// hashOfNginx is what kubelets put on a container main of image nginx:1.
	const hashOfNginx = 0x6cf18e95
	template := Template()
	p := build.Pod(name).Node("n").Ready(build.Start()).Condition(corev1.PodScheduled, corev1.ConditionTrue, build.Start()).
		Condition(pub.InPlaceUpdateReady, corev1.ConditionTrue, build.Start()).
		State(pub.LifecycleStateNormal).Revision(update.Name).Label(keys.PodTemplateHash, revision.ShortHash(update.Name)).
		Label("app", "web").Annotation("conf", "2").Annotation(keys.RuntimeContainersMeta, fmt.Sprintf(
		`{"containers":[{"name":"main","containerID":"c://1","hashes":{"plainHash":%d,"extractedEnvFromMetadataHash":%d}}]}`,
		hashOfNginx, inplace.EnvironmentHash([]corev1.EnvVar{{Name: "CONF", Value: runs}}),
	)).Obj()
	p.ResourceVersion = "1"
	p.OwnerReferences = []metav1.OwnerReference{owner}
	p.Spec.Containers = template.Spec.Containers
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "nginx:1", ContainerID: "c://1", Ready: true}}
	return p
}
