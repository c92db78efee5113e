package statefulset

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func retain(deleted, scaled v1beta1.PersistentVolumeClaimRetentionPolicyType) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
	}
}

func (e *env) gone(claim string) {
	e.Helper()
	e.Eventually(claim+" is gone", func() error {
		c, err := e.claim(claim)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, owned by %v: %w", c.OwnerReferences, err)
	})
}

func TestClaimsGoWhereThePolicySaysSo(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"), retain("Delete", "Delete"))
	set := e.settled(at("1.27", 0, 1, 2)...)
	c, err := e.claim("data-web-0")
	e.Must(err)
	if !metav1.IsControlledBy(&c, set) {
		t.Errorf("data-web-0 is owned by %v", c.OwnerReferences)
	}
	e.edit(replicas(2))
	e.gone("data-web-2")
	e.edit(reserve(intstr.FromInt32(0)))
	e.gone("data-web-0")
	e.settled(at("1.27", 1, 2)...)
	e.Must(e.Delete(e.Ctx, e.set()))
	e.gone("data-web-1")
	e.gone("data-web-2")
}

func TestClaimsStayWhereThePolicySaysSo(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"))
	e.settled(at("1.27", 0, 1, 2)...)
	c, err := e.claim("data-web-2")
	e.Must(err)
	e.edit(replicas(1))
	e.settled(at("1.27", 0)...)
	e.edit(replicas(3))
	e.settled(at("1.27", 0, 1, 2)...)
	if again, err := e.claim("data-web-2"); err != nil || again.UID != c.UID {
		t.Errorf("Pod 2 has another claim: %v", err)
	}
	e.Must(e.Delete(e.Ctx, e.set()))
	e.Eventually("the Pods are gone", func() error {
		if n := len(e.allPods()); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	if _, err := e.claim("data-web-2"); err != nil {
		t.Error(err)
	}
}

func TestPodThatComesBackGetsANewClaim(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"), retain("Retain", "Delete"))
	e.settled(at("1.27", 0, 1, 2)...)
	before, err := e.claim("data-web-2")
	e.Must(err)
	pod := e.uid(2)
	e.edit(replicas(2))
	e.Eventually("Pod 2 is on its way out", func() error {
		for _, p := range e.allPods() {
			if string(p.UID) == pod && p.DeletionTimestamp == nil {
				return fmt.Errorf("it is not")
			}
		}
		return nil
	})
	e.edit(replicas(3))
	e.settled(at("1.27", 0, 1, 2)...)
	after, err := e.claim("data-web-2")
	if err != nil || after.UID == before.UID || after.DeletionTimestamp != nil {
		t.Errorf("Pod 2 has the claim %s, deleted at %v, want another one than before: %v", after.UID, after.DeletionTimestamp, err)
	}
}

func TestClaimsGrowWithoutARestart(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"), func(set *v1beta1.StatefulSet) {
		set.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
	})
	e.settled(at("1.27", 0, 1, 2)...)
	before := e.allPods()
	size := func(text string) func(*v1beta1.StatefulSet) {
		return func(set *v1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(text)
		}
	}
	e.edit(size("2Gi"))
	e.Eventually("all claims have grown", func() error {
		set := e.set()
		s := set.Status.VolumeClaims
		if set.Status.ObservedGeneration != set.Generation || len(s) != 1 || s[0] != (v1beta1.VolumeClaimStatus{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 3}) {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	c, err := e.claim("data-web-1")
	e.Must(err)
	if has := c.Status.Capacity[corev1.ResourceStorage]; has.Cmp(resource.MustParse("2Gi")) < 0 {
		t.Errorf("data-web-1 has %s", &has)
	}
	for i, p := range e.allPods() {
		if p.UID != before[i].UID {
			t.Errorf("%s was replaced", p.Name)
		}
	}
	fixed := "fixed"
	err = e.tryEdit(size("3Gi"), func(set *v1beta1.StatefulSet) { set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &fixed })
	if !apierrors.IsInvalid(err) {
		t.Errorf("a class that does not exist answers %v, want that it is refused", err)
	}
	if err := e.tryEdit(func(set *v1beta1.StatefulSet) { set.Spec.VolumeClaimTemplates[0].Name = "other" }); !apierrors.IsInvalid(err) {
		t.Errorf("another name answers %v, want that it is refused", err)
	}
}

func TestAnotherClaimTemplateRecreatesThePods(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"))
	e.settled(at("1.27", 0, 1, 2)...)
	watch := e.watchAvailable()
	e.edit(claims("data", "logs"))
	e.Eventually("all Pods have both claims", func() error {
		for _, p := range e.allPods() {
			have := map[string]bool{}
			for _, v := range p.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					have[v.PersistentVolumeClaim.ClaimName] = true
				}
			}
			if !have["data-"+p.Name] || !have["logs-"+p.Name] {
				return fmt.Errorf("%s has %v", p.Name, have)
			}
		}
		return nil
	})
	e.settled(at("1.27", 0, 1, 2)...)
	if least := watch(); least < 2 {
		t.Errorf("there were %d available Pods, want 2 at least", least)
	}
}

func TestWritingTheOlderVersionLosesNothing(t *testing.T) {
	e := newEnv(t)
	e.create(reserve(intstr.FromInt32(1)), claims("data"), retain("Retain", "Delete"), func(set *v1beta1.StatefulSet) {
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"a": "b"}}}
	})
	e.settled(at("1.27", 0, 2, 3)...)
	want := e.set().Spec
	two := int32(2)
	scene.Edit(e.Env, "web", &v1alpha1.StatefulSet{}, func(older *v1alpha1.StatefulSet) {
		older.Labels = map[string]string{"written": "older"}
		older.Spec.Replicas = &two
	})
	want.Replicas = &two
	got := e.set().Spec
	if len(got.ReserveOrdinals) != 1 || got.Lifecycle == nil || *got.PersistentVolumeClaimRetentionPolicy != *want.PersistentVolumeClaimRetentionPolicy {
		t.Errorf("the spec is %+v", got)
	}
	e.settled(at("1.27", 0, 2)...)
}

// native is the same StatefulSet as create makes, but of Kubernetes itself.
func (e *env) native() *appsv1.StatefulSet {
	labels := map[string]string{"app": "web"}
	three := int32(3)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: e.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1.27", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}}
	set.Spec.ServiceName = "web"
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	set.Spec.Replicas = &three
	template := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	template.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	template.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{template}
	return set
}

func (e *env) orphan(set client.Object) {
	e.Helper()
	e.Must(e.Delete(e.Ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	e.Eventually("the StatefulSet is gone", func() error {
		err := e.Get(e.Ctx, client.ObjectKeyFromObject(set), set)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// TestTakingOverFromKubernetesAndBack hands Pods and claims over by deleting one StatefulSet without its Pods and creating the other. No Pod may
// notice.
func TestTakingOverFromKubernetesAndBack(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Create(e.Ctx, e.native()))
	e.Eventually("three Pods are ready", func() error {
		set := e.native()
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(set), set))
		if set.Status.ReadyReplicas != 3 {
			return fmt.Errorf("the status is %+v", set.Status)
		}
		return nil
	})
	before := e.identities()
	e.orphan(e.native())
	e.create(claims("data"))
	set := e.settled(at("1.27", 0, 1, 2)...)
	if s := set.Status; s.UpdatedReplicas != 3 || s.CurrentReplicas != 3 || s.UpdatedAvailableReplicas != 3 {
		t.Errorf("the status is %+v", s)
	}
	if after := e.identities(); after != before {
		t.Errorf("Pods and revisions were\n%s\nand are\n%s", before, after)
	}
	e.orphan(e.set())
	e.Must(e.Create(e.Ctx, e.native()))
	e.Eventually("Kubernetes has all Pods again", func() error {
		set := e.native()
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(set), set))
		for _, p := range e.allPods() {
			if !metav1.IsControlledBy(&p, set) {
				return fmt.Errorf("%s is not its own", p.Name)
			}
		}
		if set.Status.ReadyReplicas != 3 || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("the status is %+v", set.Status)
		}
		return nil
	})
	if after := e.identities(); after != before {
		t.Errorf("going back, Pods and revisions were\n%s\nand are\n%s", before, after)
	}
}

// identities names every Pod, claim and revision with its UID, and how often its containers have restarted.
func (e *env) identities() string {
	e.Helper()
	out := ""
	for _, p := range e.allPods() {
		out += fmt.Sprintf("%s %s %d\n", p.Name, p.UID, p.Status.ContainerStatuses[0].RestartCount)
		c, err := e.claim("data-" + p.Name)
		e.Must(err)
		out += fmt.Sprintf("%s %s\n", c.Name, c.UID)
	}
	var revisions appsv1.ControllerRevisionList
	e.Must(e.List(context.WithoutCancel(e.Ctx), &revisions, client.InNamespace(e.Namespace)))
	for _, r := range revisions.Items {
		out += fmt.Sprintf("%s %s\n", r.Name, r.UID)
	}
	return out
}
