package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Equivalent reports whether the API server makes the same Pods of both templates: whether they differ in no more than in how many defaults
// they spell out. A workload of Kubernetes spells all of them out. It may fill in both.
func Equivalent(a, b *corev1.PodTemplateSpec) bool {
	asKubernetes(a)
	asKubernetes(b)
	return equality.Semantic.DeepEqual(a, b)
}

// asKubernetes fills in what Kubernetes fills in in the templates of its own workloads.
func asKubernetes(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	for i := range spec.Containers {
		fillText(&spec.Containers[i].ImagePullPolicy, pullPolicy(spec.Containers[i].Image))
	}
	// The old name of the field is written along with the new one.
	fillText(&spec.DeprecatedServiceAccount, spec.ServiceAccountName)
	fillText(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	PodTemplate(template, Options{})
}
