package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// ClaimTemplate returns the template of a claim of that size, such as "1Gi".
func ClaimTemplate(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
}

// ClaimBuilder is a claim in the making.
type ClaimBuilder struct {
	claim *corev1.PersistentVolumeClaim
}

// Claim starts the claim of an instance of the CloneSet web, which controls it.
func Claim(template, id string) *ClaimBuilder {
	yes := true
	c := ClaimTemplate(template, "1Gi")
	c.ObjectMeta = metav1.ObjectMeta{
		Name: template + "-web-" + id, Namespace: "default", UID: types.UID("uid-" + template + "-" + id),
		Labels: map[string]string{"app": "web", keys.InstanceID: id},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "CloneSet", Name: "web", UID: "uid-web", Controller: &yes,
		}},
	}
	return &ClaimBuilder{claim: &c}
}

// Deleting has the claim be on its way out.
func (b *ClaimBuilder) Deleting() *ClaimBuilder {
	at := metav1.NewTime(Start())
	b.claim.DeletionTimestamp = &at
	return b
}

// OwnedBy has a Pod own the claim, and nobody control it.
func (b *ClaimBuilder) OwnedBy(p *corev1.Pod) *ClaimBuilder {
	b.claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}}
	return b
}

// Obj returns the claim.
func (b *ClaimBuilder) Obj() *corev1.PersistentVolumeClaim {
	return b.claim
}
