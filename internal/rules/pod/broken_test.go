package pod_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func TestBroken(t *testing.T) {
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"one that starts": {change: func(p *corev1.Pod) { p.Status.ContainerStatuses = waiting("ContainerCreating") }},
		"one that crashes": {
			change: func(p *corev1.Pod) { p.Status.ContainerStatuses = waiting("CrashLoopBackOff") }, want: "container app waits with CrashLoopBackOff",
		},
		"one that can't be pulled in the beginning": {
			change: func(p *corev1.Pod) { p.Status.InitContainerStatuses = waiting("ImagePullBackOff") }, want: "container app waits with ImagePullBackOff",
		},
		"one that waits for a node": {
			change: func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			},
			want: "it fits no node",
		},
		"one that is held back by a gate": {
			change: func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := build.Pod("web-0").Obj()
			tc.change(p)
			if got := pod.Broken(p); got != tc.want {
				t.Errorf("broken is %q, want %q", got, tc.want)
			}
		})
	}
}
