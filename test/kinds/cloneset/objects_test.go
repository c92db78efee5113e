package cloneset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// plain returns a CloneSet that recreates Pods.
func (e *env) plain(name string, replicas int32) *v1beta1.CloneSet {
	labels := map[string]string{"app": name}
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.Namespace},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:alpine"}}},
				},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{}},
		},
	}
}

// inPlace returns a CloneSet that updates Pods in place where it can.
func (e *env) inPlace(name string, replicas int32) *v1beta1.CloneSet {
	set := e.plain(name, replicas)
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	return set
}

// revisions lists a CloneSet's revisions as number and name, in order.
func (e *env) revisions(name string) []string {
	e.Helper()
	set := e.cloneSet(name)
	var list appsv1.ControllerRevisionList
	e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	var out []string
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) {
			out = append(out, fmt.Sprintf("%d %s", list.Items[i].Revision, list.Items[i].Name))
		}
	}
	slices.Sort(out)
	return out
}

// events counts the events of a reason on a CloneSet; an event that was seen several times counts as often.
func (e *env) events(name, reason string) int {
	e.Helper()
	var list corev1.EventList
	e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	n := 0
	for _, event := range list.Items {
		if event.InvolvedObject.Name == name && event.Reason == reason {
			n += int(max(event.Count, 1))
		}
	}
	return n
}

// condition returns a condition's status and reason; empty when it is not there.
func (e *env) condition(name string, t v1beta1.CloneSetConditionType) string {
	e.Helper()
	for _, c := range e.cloneSet(name).Status.Conditions {
		if c.Type == t {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func (e *env) awaitCondition(name string, t v1beta1.CloneSetConditionType, want string) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%s is %q", t, want), func() error {
		if got := e.condition(name, t); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func setNested(o *unstructured.Unstructured, value any, path ...string) error {
	return unstructured.SetNestedField(o.Object, value, path...)
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func difference(a, b any) string { return cmp.Diff(a, b, cmpopts.EquateEmpty()) }
