package simnode

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is a Pod with main containers "name=image", changed by edits.
func pod(containers string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: types.UID("uid-of-web"), Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "sim-1", RestartPolicy: corev1.RestartPolicyAlways},
	}
	for _, field := range strings.Fields(containers) {
		name, image, _ := strings.Cut(field, "=")
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: image})
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func annotated(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			p.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func restartPolicy(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

func setImage(container int, image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Image = image
		p.Generation++
	}
}

func setCPU(container int, cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Generation++
	}
}

func initContainer(name, image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, Image: image})
	}
}

func sidecar(name, image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers,
			corev1.Container{Name: name, Image: image, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
	}
}

func deleted(graceSeconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = new(metav1.NewTime(epoch))
		p.DeletionGracePeriodSeconds = &graceSeconds
	}
}

func sleepsBeforeStop(container int, seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}},
		}
	}
}

func gate(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "InPlaceUpdateReady", Status: status})
	}
}

func gated(p *corev1.Pod) {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
}
