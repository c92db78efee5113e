package steer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// TemplateOf returns the Pod template of a workload of any kind that releases know; nil for any other object.
func TemplateOf(workload Object) *corev1.PodTemplateSpec {
	switch o := workload.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *v1beta1.CloneSet:
		return &o.Spec.Template
	case *v1beta1.StatefulSet:
		return &o.Spec.Template
	case *v1beta1.DaemonSet:
		return &o.Spec.Template
	}
	return nil
}

// IsRelease tells whether an update of a workload begins a release: its template changes, but for the label that Deployments give and what
// a release adds. Where users name their releases, a new name is a release, and the same name is none.
func IsRelease(old, now Object) bool {
	if id := ReleaseID(now); id != "" {
		return id != ReleaseID(old)
	}
	if was, is := old.(*unstructured.Unstructured); is {
		now, is := now.(*unstructured.Unstructured)
		return !is || !sameForeign(was, now)
	}
	return !SameTemplate(TemplateOf(old), TemplateOf(now))
}

// SameTemplate tells whether two templates make the same Pods.
func SameTemplate(a, b *corev1.PodTemplateSpec) bool {
	if a == nil || b == nil {
		return a == b
	}
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, t := range []*corev1.PodTemplateSpec{a, b} {
		delete(t.Labels, keys.PodTemplateHash)
		delete(t.Annotations, keys.TrafficFirst)
	}
	return equality.Semantic.DeepEqual(a, b)
}
