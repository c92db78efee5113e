// Package cloneset runs the whole product, as a user would have it, on a real control plane with simulated nodes: one cluster and one manager for
// all tests that need no feature gates, another for those that do, a namespace for each test.
package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// env is a namespace of a cluster, for one test.
type env struct{ *scene.Env }

// newEnv returns a namespace of the usual cluster; the test runs beside others.
func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvAt(t, usual)
}

func newEnvAt(t *testing.T, where *scene.Site) *env {
	t.Helper()
	t.Parallel()
	e := &env{where.Enter(t)}
	e.Describe = e.describe
	return e
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	var sets v1beta1.CloneSetList
	if err := e.Client.List(context.Background(), &sets, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	for i := range sets.Items {
		status, err := yaml.Marshal(sets.Items[i].Status)
		fmt.Fprintf(&out, "CloneSet %s, generation %d: %s %v\n", sets.Items[i].Name, sets.Items[i].Generation, status, err)
	}
	for _, p := range e.Pods() {
		fmt.Fprintf(&out, "Pod %s %s %s deleted=%v labels=%v\n", p.Name, p.Status.Phase, p.Spec.Containers[0].Image, p.DeletionTimestamp, p.Labels)
		for _, c := range p.Status.Conditions {
			fmt.Fprintf(&out, "    %s=%s %s", c.Type, c.Status, c.Reason)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// manifest reads one of the examples.
func (e *env) manifest(name string) string {
	e.Helper()
	return e.Examples(name)[name]
}

// refused creates an object that must not be accepted, and checks that the answer says every one of the words.
func (e *env) refused(err error, words ...string) {
	e.Helper()
	if err == nil {
		e.Fatalf("accepted, want a refusal that says %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			e.Errorf("refused with %q, want it to say %q", err, word)
		}
	}
	if !apierrors.IsInvalid(err) {
		e.Errorf("refused with %v, want an error of the kind Invalid", err)
	}
}

func (e *env) cloneSet(name string) *v1beta1.CloneSet {
	e.Helper()
	set := &v1beta1.CloneSet{}
	e.Read(name, set)
	return set
}

// edit changes a CloneSet as a user would, in v1beta1.
func (e *env) edit(name string, change func(*v1beta1.CloneSet)) {
	e.Helper()
	e.Must(e.tryEdit(name, change))
}

func (e *env) tryEdit(name string, change func(*v1beta1.CloneSet)) error {
	e.Helper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set := e.cloneSet(name)
		change(set)
		return e.Client.Update(e.Ctx, set)
	})
}

func image(image string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

func replicas(n int32) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Replicas = &n }
}

func partition(n int32) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		value := intstr.FromInt32(n)
		set.Spec.UpdateStrategy.RollingUpdate.Partition = &value
	}
}

// pods returns the Pods that a CloneSet controls, those being deleted left out, by name.
func (e *env) pods(name string) []corev1.Pod {
	e.Helper()
	return slices.DeleteFunc(e.allPods(name), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

func (e *env) allPods(name string) []corev1.Pod {
	e.Helper()
	set := e.cloneSet(name)
	pods := slices.DeleteFunc(e.Pods(), func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, set) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func (e *env) claims(name string) []corev1.PersistentVolumeClaim {
	e.Helper()
	set := e.cloneSet(name)
	var list corev1.PersistentVolumeClaimList
	e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	return slices.DeleteFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool {
		return c.DeletionTimestamp != nil || !metav1.IsControlledBy(&c, set)
	})
}

// patchPod changes a Pod's metadata as a user's own controller would.
func (e *env) patchPod(name string, change func(*corev1.Pod)) {
	e.Helper()
	p := &corev1.Pod{}
	e.Read(name, p)
	before := p.DeepCopy()
	change(p)
	e.Must(e.Client.Patch(e.Ctx, p, client.MergeFrom(before)))
}

// settled waits until the CloneSet has seen its spec and all of replicas Pods are available, updated of them at the update revision, and no
// Pod is on its way out.
func (e *env) settled(name string, replicas, updated int32) *v1beta1.CloneSet {
	e.Helper()
	var set *v1beta1.CloneSet
	e.Eventually(fmt.Sprintf("%s has %d Pods, %d of them updated, all available", name, replicas, updated), func() error {
		set = e.cloneSet(name)
		s := set.Status
		got := []int32{s.Replicas, s.AvailableReplicas, s.UpdatedReplicas, s.UpdatedAvailableReplicas}
		if s.ObservedGeneration != set.Generation || !slices.Equal(got, []int32{replicas, replicas, updated, updated}) {
			return fmt.Errorf("replicas, available, updated, updated available are %v, observed generation %d of %d", got, s.ObservedGeneration, set.Generation)
		}
		if all := len(e.allPods(name)); all != int(replicas) {
			return fmt.Errorf("%d Pods are there", all)
		}
		return nil
	})
	return set
}

func names(pods []corev1.Pod) []string {
	out := make([]string, 0, len(pods))
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	return out
}

func uids(pods []corev1.Pod) []string {
	out := make([]string, 0, len(pods))
	for i := range pods {
		out = append(out, string(pods[i].UID))
	}
	slices.Sort(out)
	return out
}

// convert reads an unstructured object as a typed one.
func convert[T any](e *env, o *unstructured.Unstructured) *T {
	e.Helper()
	out := new(T)
	e.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out))
	return out
}
