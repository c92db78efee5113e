package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// workload is one object of a contender, and how its phases are brought about and judged.
type workload struct {
	object client.Object
	// replicas, image and environment change what is wanted: the last can never go in place.
	replicas    func(int32)
	image       func(string)
	environment func(string)
	inPlace     func(graceSeconds int32)
	// done reports whether the wanted number of Pods is updated and available.
	done func(want int32) bool
	// updated is the number of Pods that are; nil for workloads that are never so slow that a phase is broken off.
	updated func() int32
}

// contender is a kind of workload and the processes that look after it.
type contender struct {
	name string
	// agent is the name by which the audit logs know the processes.
	agent string
	pids  func() []int
	make  func(namespace string) workload
	// clusters is how many clusters it is in; 0 for the one.
	clusters int
}

// maxUnavailable is what the contenders of a run share, as far as they have it; fewUnavailable that of StatefulSets, whose users are more
// careful.
const (
	maxUnavailable = "25%"
	fewUnavailable = "10%"
)

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:alpine"}}},
	}
}

// workloadOf returns what the workloads of all kinds have in common. The object is read anew for each phase, in its place.
func workloadOf(object client.Object, replicas **int32, template *corev1.PodTemplateSpec) workload {
	return workload{
		object:      object,
		replicas:    func(n int32) { *replicas = &n },
		image:       func(image string) { template.Spec.Containers[0].Image = image },
		environment: func(value string) { setEnvironment(template, value) },
	}
}

func setEnvironment(template *corev1.PodTemplateSpec, value string) {
	template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "BENCH", Value: value}}
}

func deployment(namespace string) workload {
	labels := map[string]string{"app": "bench"}
	zero := int32(0)
	unavailable, surge := intstr.FromString(maxUnavailable), intstr.FromInt32(0)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge},
			},
		},
	}
	w := workloadOf(d, &d.Spec.Replicas, &d.Spec.Template)
	w.done = func(want int32) bool {
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want
	}
	return w
}

func cloneSet(namespace string) workload {
	labels := map[string]string{"app": "bench"}
	zero := int32(0)
	unavailable := intstr.FromString(maxUnavailable)
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.RollingUpdateCloneSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: &unavailable},
			},
		},
	}
	w := workloadOf(set, &set.Spec.Replicas, &set.Spec.Template)
	w.inPlace = func(graceSeconds int32) { updateInPlace(&set.Spec, graceSeconds) }
	w.done = func(want int32) bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == want && s.UpdatedReplicas == want &&
			s.UpdatedAvailableReplicas == want
	}
	return w
}

func updateInPlace(spec *v1beta1.CloneSetSpec, graceSeconds int32) {
	rolling := spec.UpdateStrategy.RollingUpdate
	rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	rolling.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: graceSeconds}
}
