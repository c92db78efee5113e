package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// subsets is how many subsets a UnitedDeployment has in one cluster, and clusters in how many clusters another one has one subset each.
const subsets, clusters = 10, 3

// unitedDeployment is as many Pods as a CloneSet has, in one CloneSet for each of its subsets, which are updated side by side.
func unitedDeployment(namespace string) workload {
	var topology v1beta1.Topology
	for i := range subsets {
		topology.Subsets = append(topology.Subsets, v1beta1.Subset{Name: fmt.Sprintf("subset-%d", i)})
	}
	return united(namespace, topology)
}

// overClusters is the same with a subset in the hub and one in each member.
func overClusters(namespace string) workload {
	topology := v1beta1.Topology{
		ClusterRegistry: &v1beta1.ClusterRegistry{ClusterType: &v1beta1.ClusterType{APIVersion: "v1", Kind: "Secret"}},
	}
	for i := range clusters {
		s := v1beta1.Subset{Name: memberName(i)}
		if i > 0 {
			s.TargetCluster = &v1beta1.ClusterReference{Name: memberName(i)}
		}
		topology.Subsets = append(topology.Subsets, s)
	}
	return united(namespace, topology)
}

func united(namespace string, topology v1beta1.Topology) workload {
	zero, one := int32(0), cloneSet(namespace).object.(*v1beta1.CloneSet)
	u := &v1beta1.UnitedDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Spec:       v1beta1.UnitedDeploymentSpec{Replicas: &zero, Selector: one.Spec.Selector, Topology: topology},
	}
	u.Spec.Template.CloneSetTemplate = &v1beta1.CloneSetTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: one.Spec.Selector.MatchLabels}, Spec: one.Spec,
	}
	w := workloadOf(u, &u.Spec.Replicas, nil)
	// A read of the object replaces its template.
	w.image = func(image string) { u.Spec.Template.CloneSetTemplate.Spec.Template.Spec.Containers[0].Image = image }
	w.environment = func(value string) { setEnvironment(&u.Spec.Template.CloneSetTemplate.Spec.Template, value) }
	w.inPlace = func(graceSeconds int32) { updateInPlace(&u.Spec.Template.CloneSetTemplate.Spec, graceSeconds) }
	w.done = func(want int32) bool {
		s := u.Status
		return s.ObservedGeneration == u.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.UpdatedReadyReplicas == want
	}
	return w
}
