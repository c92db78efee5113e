// Package statefulset runs the whole product on a real control plane with simulated nodes, and checks what users of Advanced StatefulSets rely on:
// one cluster and one manager for all tests, a namespace for each.
package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests.
var shared = &scene.Site{Name: "sts", Options: cluster.Options{Nodes: 5}, Args: []string{
	"--feature-gates=StatefulSetAutoResizePVCGate=true,ResourcesDeletionProtection=true", "--v=1",
	// One process at a time needs no election, and a killed leader's Lease would only make the next one wait.
	"--enable-leader-election=false",
}}

func TestMain(m *testing.M) { scene.MainOfKind(m, shared) }

// env is a namespace of the shared cluster, for one test.
type env struct{ *scene.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newSerialEnv(t)
}

// newSerialEnv is for a test that others must not run beside.
func newSerialEnv(t *testing.T) *env {
	t.Helper()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	return e
}

func (e *env) describe() string {
	var out strings.Builder
	for _, p := range e.allPods() {
		fmt.Fprintf(&out, "Pod %s %s %s deleted=%v labels=%v\n", p.Name, p.Status.Phase, p.Spec.Containers[0].Image, p.DeletionTimestamp, p.Labels)
	}
	var sets v1beta1.StatefulSetList
	if err := e.List(context.WithoutCancel(e.Ctx), &sets, client.InNamespace(e.Namespace)); err == nil {
		for i := range sets.Items {
			fmt.Fprintf(&out, "StatefulSet %s %+v\n", sets.Items[i].Name, sets.Items[i].Status)
		}
	}
	return out.String()
}

// create makes a StatefulSet web of three replicas that are created in parallel, after change has had its way with it.
func (e *env) create(change ...func(*v1beta1.StatefulSet)) {
	e.Helper()
	e.Must(e.tryCreate(change...))
}

func (e *env) tryCreate(change ...func(*v1beta1.StatefulSet)) error {
	labels := map[string]string{"app": "web"}
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: e.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1.27"}}
	set.Spec.ServiceName = "web"
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{}
	replicas(3)(set)
	for _, f := range change {
		f(set)
	}
	return e.Create(e.Ctx, set)
}

func (e *env) set() *v1beta1.StatefulSet {
	e.Helper()
	set := &v1beta1.StatefulSet{}
	e.Read("web", set)
	return set
}

func (e *env) edit(change ...func(*v1beta1.StatefulSet)) {
	e.Helper()
	e.Must(e.tryEdit(change...))
}

func (e *env) tryEdit(change ...func(*v1beta1.StatefulSet)) error {
	e.Helper()
	return scene.TryEdit(e.Env, "web", &v1beta1.StatefulSet{}, func(set *v1beta1.StatefulSet) {
		for _, f := range change {
			f(set)
		}
	})
}

func replicas(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Replicas = &n }
}

// slow has new Pods take two seconds to become ready: so long that those that are made together are down together, however slow the
// machine is.
func slow(set *v1beta1.StatefulSet) {
	set.Spec.Template.Annotations = map[string]string{"sim.kruise.io/ready-delay": "2s"}
}

func image(image string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

func ordered(set *v1beta1.StatefulSet) {
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
}

// rolling changes how updates go.
func rolling(change func(*v1beta1.RollingUpdateStatefulSetStrategy)) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { change(set.Spec.UpdateStrategy.RollingUpdate) }
}

func partition(n int32) func(*v1beta1.StatefulSet) {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = &n })
}

func unavailable(value intstr.IntOrString) func(*v1beta1.StatefulSet) {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.MaxUnavailable = &value })
}

func policy(p v1beta1.PodUpdateStrategyType) func(*v1beta1.StatefulSet) {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.PodUpdatePolicy = p })
}

func reserve(entries ...intstr.IntOrString) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.ReserveOrdinals = entries }
}

// claims gives every Pod a claim for each name, mounted under it.
func claims(names ...string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = nil
		container := &set.Spec.Template.Spec.Containers[0]
		container.VolumeMounts = nil
		for _, name := range names {
			template := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
			template.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			template.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, template)
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
	}
}

// allPods returns all Pods of the namespace by ordinal.
func (e *env) allPods() []corev1.Pod {
	pods := e.Pods()
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		if len(a.Name) != len(b.Name) {
			return len(a.Name) - len(b.Name)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return pods
}

func (e *env) pod(n int) corev1.Pod {
	e.Helper()
	p, err := e.tryPod(n)
	e.Must(err)
	return p
}

func (e *env) tryPod(n int) (corev1.Pod, error) {
	var p corev1.Pod
	err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: fmt.Sprintf("web-%d", n)}, &p)
	return p, err
}

// uid returns the UID of a Pod; nothing where there is none.
func (e *env) uid(n int) string {
	for _, p := range e.allPods() {
		if p.Name == fmt.Sprintf("web-%d", n) {
			return string(p.UID)
		}
	}
	return ""
}

func (e *env) claim(name string) (corev1.PersistentVolumeClaim, error) {
	var c corev1.PersistentVolumeClaim
	err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, &c)
	return c, err
}

// patchPod changes a Pod's metadata as a user would.
func (e *env) patchPod(n int, change func(*corev1.Pod)) {
	e.Helper()
	p := e.pod(n)
	before := p.DeepCopy()
	change(&p)
	e.Must(e.Patch(e.Ctx, &p, client.MergeFrom(before)))
}

func (e *env) deletePod(n int) {
	e.Helper()
	p := e.pod(n)
	e.Must(e.Delete(e.Ctx, &p))
}

// settled waits until the StatefulSet has just these Pods, as names of web- and images, all of them available, and its status says so, and how many of
// them are updated: a status follows its Pods by up to a second.
func (e *env) settled(want ...string) *v1beta1.StatefulSet {
	e.Helper()
	var set *v1beta1.StatefulSet
	e.Eventually(fmt.Sprintf("there are %v", want), func() error {
		set = e.set()
		var got []string
		var updated int32
		for _, p := range e.allPods() {
			if p.DeletionTimestamp != nil {
				return fmt.Errorf("%s is on its way out", p.Name)
			}
			if p.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision {
				updated++
			}
			got = append(got, strings.TrimPrefix(p.Name, "web-")+" "+strings.TrimPrefix(p.Spec.Containers[0].Image, "nginx:"))
		}
		s := set.Status
		n := int32(len(want))
		switch {
		case !slices.Equal(got, want):
			return fmt.Errorf("there are %v", got)
		case s.ObservedGeneration != set.Generation || s.Replicas != n || s.AvailableReplicas != n || s.UpdatedReplicas != updated || s.UpdatedAvailableReplicas != updated:
			return fmt.Errorf("the status is %+v at generation %d", s, set.Generation)
		}
		return nil
	})
	return set
}

// at gives every ordinal an image.
func at(image string, ordinals ...int) []string {
	var out []string
	for _, n := range ordinals {
		out = append(out, fmt.Sprintf("%d %s", n, image))
	}
	return out
}
