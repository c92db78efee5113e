package explain

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// member returns a Pod in service, at a revision.
func member(name, revision string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}}}
	p.Spec.NodeName, p.Spec.Containers, p.Status.Phase = "n1", []corev1.Container{{Name: "app"}}, corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true}}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now().Add(-time.Minute)),
		})
	}
	for _, one := range change {
		one(p)
	}
	return p
}

// not makes conditions of a Pod False.
func not(types ...corev1.PodConditionType) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			for _, t := range types {
				if c := &p.Status.Conditions[i]; c.Type == t {
					c.Status, c.Message = corev1.ConditionFalse, "because of "+string(t)
				}
			}
		}
	}
}

func waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		not(corev1.PodReady, corev1.ContainersReady)(p)
		p.Status.ContainerStatuses[0] = corev1.ContainerStatus{
			Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "it says so"}},
		}
	}
}

func state(s pub.LifecycleStateType) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[keys.LifecycleState] = string(s) }
}

func TestExplain(t *testing.T) {
	updating := kinds.Progress{Phase: kinds.Updating, Seen: true, Updated: 1, Wanted: 3, Total: 3, Message: "2 Pods are to be updated"}
	done := kinds.Progress{Phase: kinds.Done, Seen: true, Updated: 1, Wanted: 1, Total: 3, Message: "as far as the partition lets it"}
	first, second := member("web-a", "web-2"), member("web-b", "web-1")
	holds := func(name, why string, failure plan.Concern) plan.Plan {
		return plan.Plan{Holds: []plan.Hold{{Name: name, Why: why, Failure: failure}}}
	}
	for name, tc := range map[string]struct {
		s    Situation
		want Code
		says string
		pod  string
	}{
		"nothing":                        {Situation{Progress: kinds.Progress{Phase: kinds.Done, Seen: true, Message: "all"}, Pods: []*corev1.Pod{first}}, Nothing, "all", ""},
		"a spec that can't be read":      {Situation{Progress: updating, Plan: plan.Plan{Problem: errors.New("partition: x")}}, InvalidSpec, "partition: x", ""},
		"a controller that is not there": {Situation{Progress: kinds.Progress{Phase: kinds.Updating}, Pods: []*corev1.Pod{second}}, ControllerLag, "has not seen", ""},
		"a Rollout":                      {Situation{Progress: updating, Rollout: "demo", Pods: []*corev1.Pod{second}}, HeldByRollout, "rollout/demo", ""},
		"the partition":                  {Situation{Progress: done, Pods: []*corev1.Pod{first, second}}, HeldByPartition, "partition", ""},
		"a quota":                        {Situation{Progress: kinds.Progress{Phase: kinds.Updating, Seen: true, Failure: "exceeded quota"}}, WriteFailed, "exceeded quota", ""},
		"a pause":                        {Situation{Progress: kinds.Progress{Phase: kinds.Waiting, Seen: true, Message: "paused: 1"}, Paused: true, Pods: []*corev1.Pod{second}}, HeldByPause, "paused", ""},
		"updates on delete":              {Situation{Progress: kinds.Progress{Phase: kinds.Waiting, Seen: true, Message: "type OnDelete"}, Pods: []*corev1.Pod{second}}, OnDelete, "OnDelete", ""},
		"an image that can't be pulled":  {Situation{Progress: updating, Pods: []*corev1.Pod{second, member("web-a", "web-2", waiting("ImagePullBackOff"))}}, WaitImagePull, "ImagePullBackOff", "web-a"},
		"a crash":                        {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", waiting("CrashLoopBackOff"))}}, ContainerBroken, "CrashLoopBackOff", "web-a"},
		"no room on any node": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", not(corev1.PodScheduled, corev1.PodReady), func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase, p.Status.ContainerStatuses = "", corev1.PodPending, nil
			p.Status.Conditions[0].Reason = corev1.PodReasonUnschedulable
		})}},
			WaitSchedule, "because of PodScheduled", "web-a"},
		"a node that is gone": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", not(corev1.PodReady))}}, NodeNotReady, "n1 does not answer", "web-a"},
		"a Pod that is not ready": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", not(corev1.PodReady, corev1.ContainersReady))}},
			WaitReady, "not ready", "web-a"},
		"minReadySeconds": {Situation{Progress: updating, MinReadySeconds: 90, Pods: []*corev1.Pod{first}}, WaitMinReady, "in service in 30s", "web-a"},
		"a hook before the update": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", state(pub.LifecycleStatePreparingUpdate))}},
			WaitLifecycleHook, "inPlaceUpdate hook", "web-a"},
		"a hook before the deletion": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", state(pub.LifecycleStatePreparingDelete))}},
			WaitLifecycleHook, "preDelete hook", "web-a"},
		"a finalizer": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", func(p *corev1.Pod) {
			at := metav1.NewTime(now())
			p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/keep"}
		})}}, WaitDeletion, "example.com/keep", "web-a"},
		"a budget of all workloads": {Situation{Progress: kinds.Progress{Phase: kinds.Updating, Seen: true, Wanted: 2, Budget: "web-pub lets none go"}, Pods: []*corev1.Pod{second}},
			WaitPUB, "web-pub", ""},
		"in place only":  {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("web-b", "InPlaceOnly, but it can't", plan.Rollout)}, InPlaceRefused, "InPlaceOnly", "web-b"},
		"maxUnavailable": {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("web-b", "1 Pods wait: maxUnavailable 1 is used up", "")}, WaitBudget, "maxUnavailable", "web-b"},
		"another rule":   {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("web-b", "sidecars are updated", "")}, Held, "sidecars", "web-b"},
		"the controller at work": {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: plan.Plan{Stages: []plan.Stage{{{{Verb: plan.Delete, Before: second, What: "recreate"}}}}}},
			Updating, "delete recreate", "web-b"},
		"the deadline": {Situation{Progress: kinds.Progress{Phase: kinds.Failed, Seen: true, Message: "past its deadline"}}, DeadlineExceeded, "past its deadline", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.s.Now, tc.s.Updated, tc.s.Arg = now(), "web-2", "cloneset/web"
			e := Explain(tc.s)
			if e.Cause.Code != tc.want || !strings.Contains(e.Cause.Why, tc.says) || e.Cause.Pod != tc.pod {
				t.Errorf("the cause is %+v, want %s of Pod %q: ... %s", e.Cause, tc.want, tc.pod, tc.says)
			}
			if e.Cause.Free == "" && tc.want != Nothing && tc.want != Held {
				t.Errorf("nothing is said that would free %s", e.Cause.Code)
			}
			for _, r := range e.Pods {
				if rank(r.Code) < 0 {
					t.Errorf("code %s has no rank", r.Code)
				}
			}
			if tc.pod != "" {
				if r, found := OfPod(tc.s, tc.pod); !found || r.Code != tc.want {
					t.Errorf("of the Pod itself it says %+v", r)
				}
			}
		})
	}
	if _, found := OfPod(Situation{}, "none"); found {
		t.Error("a Pod was found that is not there")
	}
}
