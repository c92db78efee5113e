package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// contenders returns who is measured against each other: workloads that are alike in what they promise.
func contenders(kind string, native func() []int, managers func(clusters int) []int) ([]contender, error) {
	ours := func() []int { return managers(1) }
	switch kind {
	case "cloneset":
		return []contender{
			{name: "Deployment", agent: "kube-controller-manager", pids: native, make: deployment},
			{name: "CloneSet", agent: "kruise-manager", pids: ours, make: cloneSet},
		}, nil
	case gatesKind:
		return []contender{
			{name: "Deployment", agent: "kube-controller-manager", pids: native, make: deployment},
			{name: "GatedDeployment", agent: "kube-controller-manager", pids: native, make: gatedDeployment},
			{name: "CloneSet", agent: "kruise-manager", pids: ours, make: cloneSet},
		}, nil
	case "statefulset":
		return []contender{
			{name: "StatefulSet", agent: "kube-controller-manager", pids: native, make: nativeStatefulSet},
			{name: "AdvancedStatefulSet", agent: "kruise-manager", pids: ours, make: statefulSet},
		}, nil
	case "daemonset":
		return []contender{
			{name: "DaemonSet", agent: "kube-controller-manager", pids: native, make: nativeDaemonSet},
			{name: "AdvancedDaemonSet", agent: "kruise-manager", pids: ours, make: daemonSet},
		}, nil
	case "uniteddeployment":
		return []contender{
			{name: "CloneSet", agent: "kruise-manager", pids: ours, make: cloneSet},
			{name: "UnitedDeployment", agent: "kruise-manager", pids: ours, make: unitedDeployment},
			{
				name: "OverClusters", agent: "kruise-manager", pids: func() []int { return managers(clusters) }, make: overClusters,
				clusters: clusters,
			},
		}, nil
	}
	return nil, fmt.Errorf("-kind is %q, want cloneset, gates, statefulset, daemonset or uniteddeployment", kind)
}

// nativeStatefulSet is created in parallel, so that creating compares like with like. It is updated one by one, which is all that
// Kubernetes does by default with either management policy.
func nativeStatefulSet(namespace string) workload {
	labels := map[string]string{"app": "bench"}
	zero := int32(0)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			ServiceName: "bench", PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
	w := workloadOf(set, &set.Spec.Replicas, &set.Spec.Template)
	w.done = func(want int32) bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want
	}
	w.updated = func() int32 { return set.Status.UpdatedReplicas }
	return w
}

func statefulSet(namespace string) workload {
	labels := map[string]string{"app": "bench"}
	zero := int32(0)
	unavailable := intstr.FromString(fewUnavailable)
	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec: v1beta1.StatefulSetSpec{
			Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			ServiceName: "bench", PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &unavailable},
			},
		},
	}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	w := workloadOf(set, &set.Spec.Replicas, &set.Spec.Template)
	w.inPlace = func(graceSeconds int32) {
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
		rolling.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: graceSeconds}
	}
	w.done = func(want int32) bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == want && s.UpdatedReplicas == want &&
			s.UpdatedAvailableReplicas == want
	}
	return w
}
