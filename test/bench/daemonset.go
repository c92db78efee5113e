package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// onNodes has a DaemonSet want all nodes, or none of them.
func onNodes(spec *corev1.PodSpec) func(int32) {
	return func(n int32) {
		spec.NodeSelector = map[string]string{corev1.LabelOSStable: "none"}
		if n > 0 {
			spec.NodeSelector = nil
		}
	}
}

func nativeDaemonSet(namespace string) workload {
	labels := map[string]string{"app": "bench"}
	unavailable := intstr.FromString(maxUnavailable)
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable},
			},
		},
	}
	replicas := onNodes(&set.Spec.Template.Spec)
	replicas(0)
	return workload{
		object:   set,
		replicas: replicas,
		image:    func(image string) { set.Spec.Template.Spec.Containers[0].Image = image },
		environment: func(value string) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "BENCH", Value: value}}
		},
		done: func(want int32) bool {
			s := set.Status
			return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled == want && s.UpdatedNumberScheduled == want &&
				s.NumberAvailable == want
		},
	}
}

func daemonSet(namespace string) workload {
	labels := map[string]string{"app": "bench"}
	unavailable := intstr.FromString(maxUnavailable)
	set := &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec: v1beta1.DaemonSetSpec{
			DaemonSetBaseSpec: v1beta1.DaemonSetBaseSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			},
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateDaemonSet{
				Type: v1beta1.InPlaceRollingUpdateType, RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{
					MaxUnavailable: &unavailable,
				},
			}},
		},
	}
	replicas := onNodes(&set.Spec.Template.Spec)
	replicas(0)
	return workload{
		object:   set,
		replicas: replicas,
		image:    func(image string) { set.Spec.Template.Spec.Containers[0].Image = image },
		environment: func(value string) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "BENCH", Value: value}}
		},
		inPlace: func(graceSeconds int32) {
			set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.DaemonSetInPlaceUpdateStrategy{
				GracePeriodSeconds: graceSeconds,
			}
		},
		done: func(want int32) bool {
			s := set.Status
			return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled == want && s.UpdatedNumberScheduled == want &&
				s.NumberAvailable == want
		},
	}
}
