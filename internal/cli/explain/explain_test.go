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
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
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
	updating := progress.Progress{Phase: progress.Updating, Seen: true, Updated: 1, Wanted: 3, Total: 3, Message: "2 Pods are to be updated"}
	done := progress.Progress{Phase: progress.Done, Seen: true, Updated: 1, Wanted: 1, Total: 3, Message: "as far as the partition lets it"}
	first, second := member("web-a", "web-2"), member("web-b", "web-1")
	gone := now()
	holds := func(name string, code reason.Code, why string) plan.Plan {
		return plan.Plan{Holds: []plan.Hold{{Name: name, Code: code, Why: why}}}
	}
	for name, tc := range map[string]struct {
		s    Situation
		want reason.Code
		says string
		pod  string
	}{
		"nothing":                        {Situation{Progress: progress.Progress{Phase: progress.Done, Seen: true, Message: "all"}, Pods: []*corev1.Pod{first}}, reason.Nothing, "all", ""},
		"a spec that can't be read":      {Situation{Progress: updating, Plan: plan.Plan{Problem: errors.New("partition: x")}}, reason.InvalidSpec, "partition: x", ""},
		"a controller that is not there": {Situation{Progress: progress.Progress{Phase: progress.Updating}, Pods: []*corev1.Pod{second}}, reason.ControllerLag, "has not seen", ""},
		"a Rollout":                      {Situation{Progress: updating, Rollout: "demo", Pods: []*corev1.Pod{second}}, reason.HeldByRollout, "rollout/demo", ""},
		"the partition":                  {Situation{Progress: done, Pods: []*corev1.Pod{first, second}}, reason.HeldByPartition, "partition", ""},
		"a quota":                        {Situation{Progress: progress.Progress{Phase: progress.Updating, Seen: true, Failure: "exceeded quota"}}, reason.QuotaExceeded, "exceeded quota", ""},
		"a pause":                        {Situation{Progress: progress.Progress{Phase: progress.Waiting, Reason: progress.Paused, Seen: true, Message: "paused: 1"}, Paused: true, Pods: []*corev1.Pod{second}}, reason.HeldByPause, "paused", ""},
		"updates on delete":              {Situation{Progress: progress.Progress{Phase: progress.Waiting, Reason: progress.OnDelete, Seen: true, Message: "type OnDelete"}, Pods: []*corev1.Pod{second}}, reason.OnDelete, "OnDelete", ""},
		"an image that can't be pulled":  {Situation{Progress: updating, Pods: []*corev1.Pod{second, member("web-a", "web-2", waiting("ImagePullBackOff"))}}, reason.WaitImagePull, "ImagePullBackOff", "web-a"},
		"a crash":                        {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", waiting("CrashLoopBackOff"))}}, reason.ContainerBroken, "CrashLoopBackOff", "web-a"},
		"no room on any node": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", not(corev1.PodScheduled, corev1.PodReady), func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase, p.Status.ContainerStatuses = "", corev1.PodPending, nil
			p.Status.Conditions[0].Reason = corev1.PodReasonUnschedulable
		})}},
			reason.WaitSchedule, "because of PodScheduled", "web-a"},
		"a node that is gone": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", not(corev1.PodReady))}}, reason.NodeNotReady, "n1 does not answer", "web-a"},
		"a Pod that is not ready": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", not(corev1.PodReady, corev1.ContainersReady))}},
			reason.WaitReady, "not ready", "web-a"},
		"minReadySeconds": {Situation{Progress: updating, MinReadySeconds: 90, Pods: []*corev1.Pod{first}}, reason.WaitMinReady, "in service in 30s", "web-a"},
		"a hook before the update": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", state(pub.LifecycleStatePreparingUpdate))}},
			reason.WaitLifecycleHook, "inPlaceUpdate hook", "web-a"},
		"a hook before the deletion": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", state(pub.LifecycleStatePreparingDelete))}},
			reason.WaitLifecycleHook, "preDelete hook", "web-a"},
		"a finalizer": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", func(p *corev1.Pod) {
			at := metav1.NewTime(now())
			p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/keep"}
		})}}, reason.WaitDeletion, "example.com/keep", "web-a"},
		"a budget of all workloads": {Situation{Progress: progress.Progress{Phase: progress.Updating, Seen: true, Wanted: 2, Budget: "web-pub lets none go"}, Pods: []*corev1.Pod{second}},
			reason.WaitPUB, "web-pub", ""},
		"in place only":  {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("web-b", reason.InPlaceRefused, "InPlaceOnly, but it can't")}, reason.InPlaceRefused, "InPlaceOnly", "web-b"},
		"maxUnavailable": {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("web-b", reason.WaitBudget, "1 Pods wait: maxUnavailable 1 is used up")}, reason.WaitBudget, "maxUnavailable", "web-b"},
		"another rule":   {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("web-b", reason.Held, "sidecars are updated")}, reason.Held, "sidecars", "web-b"},
		"the controller at work": {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: plan.Plan{Stages: []plan.Stage{{{{Verb: plan.Delete, Before: second, What: "recreate"}}}}}},
			reason.Updating, "delete recreate", "web-b"},
		"a wave with a pause": {Situation{Progress: progress.Progress{Phase: progress.Waiting, Reason: progress.NeedsApproval, Seen: true, Message: "wave 1 is done", Next: "annotate it"}},
			reason.WaitApproval, "wave 1", ""},
		"sidecars that can't change in a Pod": {Situation{Progress: progress.Progress{Phase: progress.Waiting, Reason: progress.NeedsRecreation, Seen: true, Message: "its ports differ", Next: "recreate"}},
			reason.InPlaceRefused, "ports differ", ""},
		"a SidecarSet that is invalid": {Situation{Progress: progress.Progress{Phase: progress.Failed, Reason: progress.InvalidSpec, Seen: true, Message: "selector: y"}}, reason.InvalidSpec, "selector: y", ""},
		"a job that was given up":      {Situation{Progress: progress.Progress{Phase: progress.Failed, Reason: progress.GivenUp, Seen: true, Message: "2 failed"}}, reason.Stopped, "2 failed", ""},
		"gracePeriodSeconds": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-1", not(corev1.PodReady), func(p *corev1.Pod) {
			p.Annotations = map[string]string{keys.InPlaceUpdateGrace: `{"revision":"web-2","containerImages":{"app":"web:v2"},"graceSeconds":10}`}
		})}}, reason.WaitGrace, "gracePeriodSeconds", "web-a"},
		"a broken Pod of a release": {Situation{Progress: updating, Rollout: "demo", Pods: []*corev1.Pod{second, member("web-a", "web-2", waiting("ErrImagePull"))}},
			reason.WaitImagePull, "ErrImagePull", "web-a"},
		"maxSurge":                    {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("n1", reason.WaitBudget, "1 nodes wait: maxSurge 1 is used up")}, reason.WaitBudget, "maxSurge", "web-b"},
		"a workload that was deleted": {Situation{Progress: updating, Deleted: &gone, Finalizers: []string{"example.com/keep"}, Pods: []*corev1.Pod{second}}, reason.WaitDeletion, "example.com/keep", ""},
		"what an event says":          {Situation{Progress: updating, Refused: "exceeded quota: none"}, reason.QuotaExceeded, "exceeded quota", ""},
		"a Pod in service that a hook keeps from its deletion": {Situation{Progress: updating, Pods: []*corev1.Pod{member("web-a", "web-2", func(p *corev1.Pod) {
			p.Labels["lifecycle.apps.kruise.io/state"] = "PreparingDelete"
		})}}, reason.WaitLifecycleHook, "preDelete hook", "web-a"},
		"an order of ordinals": {Situation{Progress: updating, Pods: []*corev1.Pod{second}, Plan: holds("", reason.WaitEarlierOrdinal, "OrderedReady")}, reason.WaitEarlierOrdinal, "OrderedReady", "web-b"},
		"the deadline":         {Situation{Progress: progress.Progress{Phase: progress.Failed, Seen: true, Message: "past its deadline"}}, reason.DeadlineExceeded, "past its deadline", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.s.Now, tc.s.Updated, tc.s.Arg = now(), "web-2", "cloneset/web"
			e := Explain(tc.s)
			if e.Cause.Code != tc.want || !strings.Contains(e.Cause.Why, tc.says) || e.Cause.Pod != tc.pod {
				t.Errorf("the cause is %+v, want %s of Pod %q: ... %s", e.Cause, tc.want, tc.pod, tc.says)
			}
			if e.Cause.Free == "" && tc.want != reason.Nothing {
				t.Errorf("nothing is said that would free %s", e.Cause.Code)
			}
			for _, r := range e.Pods {
				if r.Code.Rank() < 0 {
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

// TestFree checks that what frees a Pod, or the workload, names the object and the command or the change.
func TestFree(t *testing.T) {
	hooks := &pub.Lifecycle{
		PreDelete:     &pub.LifecycleHook{FinalizersHandler: []string{"example.com/drain"}},
		InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"guard": "on"}},
		PreNormal:     &pub.LifecycleHook{LabelsHandler: map[string]string{"warm": "yes"}},
	}
	at := member("web-a", "web-2")
	for name, tc := range map[string]struct {
		code reason.Code
		pod  *corev1.Pod
		want []string
	}{
		"HeldByRollout":     {code: reason.HeldByRollout, want: []string{"kubectl kruise explain rollout/demo"}},
		"HeldByPause":       {code: reason.HeldByPause, want: []string{"kubectl kruise resume clone/web"}},
		"HeldByPartition":   {code: reason.HeldByPartition, want: []string{"partition of clone/web", "kubectl kruise plan clone/web --set partition=0"}},
		"OnDelete":          {code: reason.OnDelete, pod: at, want: []string{"delete Pod web-a", "RollingUpdate in clone/web"}},
		"WaitBudget":        {code: reason.WaitBudget, want: []string{"Pods of clone/web", "raise its maxUnavailable"}},
		"WaitPUB":           {code: reason.WaitPUB, want: []string{"change that PodUnavailableBudget"}},
		"WaitImagePull":     {code: reason.WaitImagePull, pod: at, want: []string{"kubectl describe pod web-a", "kubectl kruise undo clone/web"}},
		"ContainerBroken":   {code: reason.ContainerBroken, pod: at, want: []string{"kubectl describe pod web-a", "kubectl kruise undo clone/web"}},
		"WaitReady":         {code: reason.WaitReady, pod: at, want: []string{"kubectl logs web-a", "kubectl kruise undo clone/web"}},
		"WaitSchedule":      {code: reason.WaitSchedule, pod: at, want: []string{"template of clone/web"}},
		"WaitDeletion":      {code: reason.WaitDeletion, pod: at, want: []string{"terminationGracePeriodSeconds"}},
		"InPlaceRefused":    {code: reason.InPlaceRefused, pod: at, want: []string{"InPlaceIfPossible in clone/web", "kubectl kruise undo clone/web"}},
		"WriteFailed":       {code: reason.WriteFailed, want: []string{"quota"}},
		"InvalidSpec":       {code: reason.InvalidSpec, want: []string{"field of clone/web"}},
		"DeadlineExceeded":  {code: reason.DeadlineExceeded, want: []string{"Pods of clone/web", "kubectl kruise undo clone/web"}},
		"Held":              {code: reason.Held, pod: at, want: []string{"kubectl kruise plan clone/web"}},
		"ControllerLag":     {code: reason.ControllerLag, want: []string{"kruise-manager", "kubectl -n kruise-system get pods"}},
		"Updating":          {code: reason.Updating, want: []string{"by itself"}},
		"WaitGrace":         {code: reason.WaitGrace, want: []string{"by itself"}},
		"WaitMinReady":      {code: reason.WaitMinReady, want: []string{"by itself"}},
		"a preDelete hook":  {pod: member("web-a", "web-1", state(pub.LifecycleStatePreparingDelete)), want: []string{"take finalizer example.com/drain off Pod web-a", "preDelete", "clone/web"}},
		"an update hook":    {pod: member("web-a", "web-1", state(pub.LifecycleStatePreparingUpdate)), want: []string{"take label guard=on off Pod web-a", "inPlaceUpdate"}},
		"an update is over": {pod: member("web-a", "web-2", state(pub.LifecycleStateUpdated)), want: []string{"put label guard=on on Pod web-a"}},
		"a preNormal hook": {pod: member("web-a", "web-2", state(pub.LifecycleStatePreparingNormal), not(corev1.PodReady)),
			want: []string{"put label warm=yes on Pod web-a", "preNormal"}},
		"a node that is gone": {pod: member("web-a", "web-2", not(corev1.PodReady)), want: []string{"bring node n1 back"}},
		"a finalizer": {pod: member("web-a", "web-1", func(p *corev1.Pod) {
			gone := metav1.NewTime(now())
			p.DeletionTimestamp, p.Finalizers = &gone, []string{"example.com/keep"}
		}), want: []string{"example.com/keep", "off Pod web-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Situation{Arg: "clone/web", Rollout: "demo", Updated: "web-2", Now: now(), Lifecycle: hooks}
			r := Reason{Code: tc.code}
			switch {
			case tc.code == "":
				s.Rollout, s.Pods = "", []*corev1.Pod{tc.pod}
				r, _ = OfPod(s, tc.pod.Name)
			case tc.pod != nil:
				r.Pod = tc.pod.Name
				fallthrough
			default:
				r.Free = s.free(r)
			}
			for _, want := range tc.want {
				if !strings.Contains(r.Free, want) {
					t.Errorf("%s is freed by %q, which does not say %q", r.Code, r.Free, want)
				}
			}
		})
	}
	if free := (Situation{Arg: "deployment/web", Native: true}).free(Reason{Code: reason.ControllerLag}); !strings.Contains(free, "kube-controller-manager") {
		t.Errorf("a Deployment that was not seen is freed by %q", free)
	}
}

// TestRevisionOfPods checks by which label Pods are told apart, and what is said of those that tell nothing.
func TestRevisionOfPods(t *testing.T) {
	labelled := member("web-a", "", func(p *corev1.Pod) { p.Labels[keys.PodTemplateHash] = "7f9" })
	for name, tc := range map[string]struct {
		s    Situation
		want reason.Code
	}{
		"the newest ReplicaSet":  {Situation{Updated: "web-7f9", Label: keys.PodTemplateHash}, reason.UpToDate},
		"an older ReplicaSet":    {Situation{Updated: "web-5b6", Label: keys.PodTemplateHash}, reason.WaitBudget},
		"a hash":                 {Situation{Updated: "7f9", Label: keys.PodTemplateHash}, reason.UpToDate},
		"Pods that do not tell":  {Situation{}, reason.InService},
		"a label that is absent": {Situation{Updated: "web-7f9"}, reason.WaitBudget},
	} {
		t.Run(name, func(t *testing.T) {
			tc.s.Now, tc.s.Pods = now(), []*corev1.Pod{labelled}
			tc.s.Progress = progress.Progress{Phase: progress.Updating, Seen: true, Wanted: 1}
			if r, _ := OfPod(tc.s, "web-a"); r.Code != tc.want {
				t.Errorf("it is %+v, want %s", r, tc.want)
			}
			e := Explain(tc.s)
			if e.UpToDate+e.InService+len(e.Pods) != 1 || (e.InService == 1) != (tc.want == reason.InService) {
				t.Errorf("it is counted as %+v", e)
			}
		})
	}
}
