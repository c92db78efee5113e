package simnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// report writes the Pod's status if it changed, and ends the Pod if it has stopped.
func (k *Kubelets) report(ctx context.Context, r *kept, s Situation) error {
	if !k.defaults.Terse || !unimportant(r.box) {
		want := Status(r.box, s)
		if s.Pod.DeletionTimestamp != nil && !r.box.Stopped {
			keepGenerations(&s.Pod.Status, &want)
		}
		if gone, err := k.patchStatus(ctx, r, s.Pod, &want); err != nil || gone {
			return err
		}
	}
	if !r.box.Stopped {
		return nil
	}
	pod, now := s.Pod, int64(0)
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting stopped pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.gone = true
	return nil
}

// patchStatus writes what differs, if anything does. A Pod that is gone by then needs no more words.
func (k *Kubelets) patchStatus(ctx context.Context, r *kept, pod *corev1.Pod, want *corev1.PodStatus) (gone bool, err error) {
	patch, err := patchOf(pod, want)
	if err != nil || patch == nil {
		return false, err
	}
	answer, err := k.client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true, nil // gone, or another Pod of the same name: the watch will tell
	}
	if err != nil {
		return false, fmt.Errorf("writing status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	answer.ManagedFields = nil
	r.answer = answer
	return false, nil
}

// unimportant tells whether a Sandbox is at a point that Rules.Terse leaves out.
func unimportant(box Sandbox) bool {
	if box.Stopped {
		return true
	}
	for i := range box.Containers {
		if c := &box.Containers[i]; c.ran() || c.Reason != reasonCreating {
			return false
		}
	}
	return box.Phase == corev1.PodPending
}

// keepGenerations makes a wanted status differ from the reported one in more than generations. Deleting a Pod raises its
// generation, and to report just that would be a write for nobody: the Pod's last status follows soon.
func keepGenerations(have, want *corev1.PodStatus) {
	want.ObservedGeneration = have.ObservedGeneration
	for i := range want.Conditions {
		if _, before := podutil.GetPodCondition(have, want.Conditions[i].Type); before != nil {
			want.Conditions[i].ObservedGeneration = before.ObservedGeneration
		}
	}
}
