package cloneset

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestClaimTemplatesOfAnOldRevision(t *testing.T) {
	for name, partition := range map[string]*intstr.IntOrString{
		"at partition 100%":                  percent("100%"),
		"at a partition of all replicas":     number(3),
		"at a partition beyond all replicas": number(4),
	} {
		t.Run(name, func(t *testing.T) { newEnv(t).growsAtTheOldRevision(partition) })
	}
}

// growsAtTheOldRevision has a template lose a claim, and a Pod added that is still to have it.
func (e *env) growsAtTheOldRevision(partition *intstr.IntOrString) {
	e.Helper()
	set := e.plain("twofold", 2)
	claim := func(name string) corev1.PersistentVolumeClaim {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
		return c
	}
	mount := func(names ...string) []corev1.VolumeMount {
		var out []corev1.VolumeMount
		for _, n := range names {
			out = append(out, corev1.VolumeMount{Name: n, MountPath: "/" + n})
		}
		return out
	}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("a"), claim("b")}
	set.Spec.Template.Spec.Containers[0].VolumeMounts = mount("a", "b")
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("twofold", 2, 2)
	e.edit("twofold", func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates[:1]
		set.Spec.Template.Spec.Containers[0].VolumeMounts = mount("a")
		set.Spec.UpdateStrategy.RollingUpdate.Partition = partition
		replicas(3)(set)
	})
	e.settled("twofold", 3, 0)
	for _, p := range e.pods("twofold") {
		if n := len(p.Spec.Containers[0].VolumeMounts); n < 2 {
			e.Errorf("Pod %s of the old revision has %d mounts", p.Name, n)
		}
	}
}

func TestClaimTemplatesChangeAlongWithAnImage(t *testing.T) {
	e := newEnv(t)
	o := e.Manifest(e.manifest("cloneset-claims.yaml"))
	e.Must(setNested(o, "InPlaceIfPossible", "spec", "updateStrategy", "type"))
	e.Must(e.Client.Create(e.Ctx, o))
	e.settled("sample-data", 5, 5)
	before := uids(e.pods("sample-data"))
	e.edit("sample-data", func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = quantity("30Gi")
		image("nginx:mainline")(set)
	})
	e.settled("sample-data", 5, 5)
	if after := uids(e.pods("sample-data")); !slices.Equal(before, after) {
		t.Errorf("Pods are %v, were %v", after, before)
	}
	for _, c := range e.claims("sample-data") {
		if got := c.Spec.Resources.Requests.Storage().String(); got != "20Gi" {
			t.Errorf("claim %s asks for %s, want 20Gi as before", c.Name, got)
		}
	}
}
