package build

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// PodBuilder is a Pod in the making.
type PodBuilder struct {
	pod *corev1.Pod
}

// Pod starts a Pod that is pending, has no node, and was created at Start.
func Pod(name string) *PodBuilder {
	return &PodBuilder{pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID("uid-" + name),
			Labels: map[string]string{}, Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(Start()),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}}
}

// Pods returns Pods named web-0, web-1 and so on, which run and are ready on nodes of their own, after each function has changed them.
func Pods(count int, change ...func(i int, p *PodBuilder)) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, count)
	for i := range count {
		p := Pod(fmt.Sprintf("web-%d", i)).Node(fmt.Sprintf("node-%d", i)).Ready(Start())
		for _, f := range change {
			f(i, p)
		}
		pods = append(pods, p.Obj())
	}
	return pods
}

// Obj returns the Pod.
func (b *PodBuilder) Obj() *corev1.Pod {
	return b.pod
}

// Node puts the Pod on a node.
func (b *PodBuilder) Node(name string) *PodBuilder {
	b.pod.Spec.NodeName = name
	return b
}

// Phase sets the Pod's phase.
func (b *PodBuilder) Phase(phase corev1.PodPhase) *PodBuilder {
	b.pod.Status.Phase = phase
	return b
}

// Ready has the Pod run, and be ready since a moment.
func (b *PodBuilder) Ready(since time.Time) *PodBuilder {
	return b.Phase(corev1.PodRunning).Condition(corev1.PodReady, corev1.ConditionTrue, since)
}

// NotReady has the Pod run without being ready.
func (b *PodBuilder) NotReady() *PodBuilder {
	return b.Phase(corev1.PodRunning).Condition(corev1.PodReady, corev1.ConditionFalse, Start())
}

// Condition sets a condition of the Pod, which has its status since a moment.
func (b *PodBuilder) Condition(kind corev1.PodConditionType, status corev1.ConditionStatus, since time.Time) *PodBuilder {
	c := corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(since)}
	for i := range b.pod.Status.Conditions {
		if b.pod.Status.Conditions[i].Type == kind {
			b.pod.Status.Conditions[i] = c
			return b
		}
	}
	b.pod.Status.Conditions = append(b.pod.Status.Conditions, c)
	return b
}

// Restarts gives the Pod one more container for each count, which has restarted so many times.
func (b *PodBuilder) Restarts(counts ...int32) *PodBuilder {
	for _, count := range counts {
		name := fmt.Sprintf("c%d", len(b.pod.Status.ContainerStatuses))
		b.pod.Status.ContainerStatuses = append(b.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, RestartCount: count})
	}
	return b
}

// Created sets when the Pod was created.
func (b *PodBuilder) Created(at time.Time) *PodBuilder {
	b.pod.CreationTimestamp = metav1.NewTime(at)
	return b
}

// Deleting has the Pod be on its way out.
func (b *PodBuilder) Deleting() *PodBuilder {
	at := metav1.NewTime(Start())
	b.pod.DeletionTimestamp = &at
	return b
}

// Label sets a label.
func (b *PodBuilder) Label(key, value string) *PodBuilder {
	b.pod.Labels[key] = value
	return b
}

// Annotation sets an annotation.
func (b *PodBuilder) Annotation(key, value string) *PodBuilder {
	b.pod.Annotations[key] = value
	return b
}

// Revision puts the Pod at a revision.
func (b *PodBuilder) Revision(name string) *PodBuilder {
	return b.Label(appsv1.ControllerRevisionHashLabelKey, name)
}

// State sets the Pod's lifecycle state.
func (b *PodBuilder) State(state pub.LifecycleStateType) *PodBuilder {
	return b.Label(keys.LifecycleState, string(state))
}

// Instance sets the Pod's instance id.
func (b *PodBuilder) Instance(id string) *PodBuilder {
	return b.Label(keys.InstanceID, id)
}

// Controller has a CloneSet with this UID control the Pod.
func (b *PodBuilder) Controller(uid types.UID) *PodBuilder {
	yes := true
	b.pod.OwnerReferences = append(b.pod.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "CloneSet", Name: "web", UID: uid, Controller: &yes,
	})
	return b
}
