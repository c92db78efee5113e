package claim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTemplatesHash(t *testing.T) {
	template := func(name, size string) corev1.PersistentVolumeClaim {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return c
	}
	recorded := template("data-vol", "20Gi")
	if got := TemplatesHash([]corev1.PersistentVolumeClaim{recorded}); got != "16312009" {
		t.Errorf("hash of the recorded template is %q, want 16312009", got)
	}
	if got := TemplatesHash(nil); got != "" {
		t.Errorf("hash of no templates is %q, want none", got)
	}
	a, b := template("a", "1Gi"), template("b", "1Gi")
	if TemplatesHash([]corev1.PersistentVolumeClaim{a, b}) != TemplatesHash([]corev1.PersistentVolumeClaim{b, a}) {
		t.Error("the order of templates changes the hash")
	}
	recorded.Status.Phase, recorded.Labels = corev1.ClaimPending, map[string]string{"x": "y"}
	if got := TemplatesHash([]corev1.PersistentVolumeClaim{recorded}); got != "16312009" {
		t.Errorf("labels or status change the hash to %q", got)
	}
}
