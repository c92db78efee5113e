package build

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// CloneSetBuilder is a CloneSet in the making.
type CloneSetBuilder struct {
	set *v1beta1.CloneSet
}

// CloneSet starts a CloneSet with one replica of Template("nginx:1.27"), whose Pods carry the label app with the CloneSet's name.
func CloneSet(name string) *CloneSetBuilder {
	labels := map[string]string{"app": name}
	template := Template("nginx:1.27")
	template.Labels = labels
	one := int32(1)
	return &CloneSetBuilder{set: &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: &one,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: *template,
			},
		},
	}}
}

// Replicas sets how many Pods are wanted.
func (b *CloneSetBuilder) Replicas(count int32) *CloneSetBuilder {
	b.set.Spec.Replicas = &count
	return b
}

// Image sets the image of the first container.
func (b *CloneSetBuilder) Image(image string) *CloneSetBuilder {
	b.set.Spec.Template.Spec.Containers[0].Image = image
	return b
}

// ClaimTemplates sets the templates of the claims that each Pod has.
func (b *CloneSetBuilder) ClaimTemplates(templates ...corev1.PersistentVolumeClaim) *CloneSetBuilder {
	b.set.Spec.VolumeClaimTemplates = templates
	return b
}

// Obj returns the CloneSet.
func (b *CloneSetBuilder) Obj() *v1beta1.CloneSet {
	return b.set
}

// Template returns a Pod template, labelled app: web, with one container that is named app.
func Template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}
