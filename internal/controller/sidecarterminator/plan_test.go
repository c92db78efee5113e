package sidecarterminator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// podOf returns a Pod from its containers, each in words: its name, then true, ignore or image=x for its marks, then waiting, running,
// running=for how long, or ended=code.
func podOf(policy corev1.RestartPolicy, containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: "default", UID: "u"}}
	p.Spec.RestartPolicy, p.Spec.NodeName, p.Status.Phase = policy, "node", corev1.PodRunning
	for _, text := range containers {
		words := strings.Fields(text)
		c := corev1.Container{Name: words[0], Image: "before"}
		status := corev1.ContainerStatus{Name: c.Name}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "true":
				c.Env = append(c.Env, corev1.EnvVar{Name: keys.TerminateSidecarEnv, Value: "True"})
			case "ignore":
				c.Env = append(c.Env, corev1.EnvVar{Name: keys.TerminateSidecarIgnoreExitCodeEnv, Value: "true"})
			case "image":
				c.Env = append(c.Env, corev1.EnvVar{Name: keys.TerminateSidecarWithImageEnv, Value: value})
			case "now":
				c.Image = value
			case "running":
				age, err := time.ParseDuration(value)
				if err != nil {
					age = time.Hour
				}
				status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-age))}
			case "waiting":
				status.State.Waiting = &corev1.ContainerStateWaiting{}
			case "ended":
				code := int32(0)
				_, _ = fmt.Sscan(value, &code) // the words are this test's own
				status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code}
			}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	}
	return p
}

func requested(age time.Duration, phase v1beta1.ContainerRecreateRequestPhase) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Name: "sidecar-termination-u", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	r.Status.Phase = phase
	if phase == v1beta1.ContainerRecreateRequestCompleted {
		at := metav1.NewTime(now.Add(-age))
		r.Status.CompletionTime = &at
	}
	return r
}

// told returns a plan's writes and holds in words.
func told(p plan.Plan) string {
	var all []string
	for _, a := range p.Actions() {
		text := a.What
		if a.Verb == plan.Create {
			text += " by " + a.After.GetName()
		}
		all = append(all, text)
	}
	for _, h := range p.Holds {
		all = append(all, strings.Join(strings.Fields("hold "+h.Name+" "+h.Event), " "))
	}
	if p.Recheck > 0 {
		all = append(all, "look again in "+p.Recheck.String())
	}
	return strings.Join(all, "; ")
}

func TestPlan(t *testing.T) {
	const never, onFailure = corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	const completed, pending = v1beta1.ContainerRecreateRequestCompleted, v1beta1.ContainerRecreateRequestPending
	for name, tc := range map[string]struct {
		pod      *corev1.Pod
		virtual  bool
		noNode   bool
		requests []*v1beta1.ContainerRecreateRequest
		want     string
	}{
		"the work goes on":   {pod: podOf(never, "main running", "side true running")},
		"it has ended":       {pod: podOf(never, "main ended=0", "side true running"), want: "stop [side] by sidecar-termination-u"},
		"it has ended badly": {pod: podOf(never, "main ended=1", "side true running"), want: "stop [side] by sidecar-termination-u"},
		"one of two goes on": {pod: podOf(never, "main ended=0", "more running", "side true running")},
		"not all containers are known": {pod: func() *corev1.Pod {
			p := podOf(never, "main ended=0", "side true running")
			p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1]
			return p
		}()},
		"it restarts after a failure":                     {pod: podOf(onFailure, "main ended=1", "side true running")},
		"it ends well, and sidecars can't count":          {pod: podOf(onFailure, "main ended=0", "side true running"), want: "end work as Succeeded"},
		"a sidecar failed and will run again":             {pod: podOf(onFailure, "main ended=0", "side true ended=137"), want: "end work as Succeeded"},
		"the exit code does not count":                    {pod: podOf(never, "main ended=0", "side true ignore running"), want: "end work as Succeeded"},
		"the exit code does not count, that of main does": {pod: podOf(never, "main ended=1", "side true ignore running"), want: "end work as Failed"},
		"it does not run yet, and does not count":         {pod: podOf(never, "main ended=0", "side true ignore waiting"), want: "end work as Succeeded"},
		"first those that count":                          {pod: podOf(never, "main ended=0", "side true running", "lax true ignore running"), want: "stop [side] by sidecar-termination-u"},
		"then the others":                                 {pod: podOf(never, "main ended=0", "side true ended=0", "lax true ignore running"), want: "end work as Succeeded"},
		"it does not run yet":                             {pod: podOf(never, "main ended=0", "side true waiting"), want: "hold side"},
		"it has only just started":                        {pod: podOf(never, "main ended=0", "side true running=1s"), want: "look again in 2s"},
		"one of two has only just started":                {pod: podOf(never, "main ended=0", "side true running", "more true running=2s"), want: "look again in 1s"},
		"it has only just started, and does not count":    {pod: podOf(never, "main ended=0", "side true ignore running=1s"), want: "end work as Succeeded"},
		"all have ended":                                  {pod: podOf(never, "main ended=0", "side true ended=143")},
		"a request is under way":                          {pod: podOf(never, "main ended=0", "side true running"), requests: []*v1beta1.ContainerRecreateRequest{requested(time.Hour, v1beta1.ContainerRecreateRequestRecreating)}},
		"a request has just been made":                    {pod: podOf(never, "main ended=0", "side true running"), requests: []*v1beta1.ContainerRecreateRequest{requested(20*time.Second, "")}, want: "look again in 40s"},
		"a request is not answered":                       {pod: podOf(never, "main ended=0", "side true running"), requests: []*v1beta1.ContainerRecreateRequest{requested(time.Minute, pending)}, want: "hold sidecar-termination-u SidecarTerminationStuck"},
		"a request is not answered, but there is an image": {pod: podOf(never, "main ended=0", "side true image=quick running"), requests: []*v1beta1.ContainerRecreateRequest{requested(time.Minute, "")},
			want: "replace the images of [side]; hold sidecar-termination-u SidecarTerminationStuck"},
		"a request has just ended":            {pod: podOf(never, "main ended=0", "side true running"), requests: []*v1beta1.ContainerRecreateRequest{requested(4*time.Second, completed)}, want: "look again in 6s"},
		"a request was in vain":               {pod: podOf(never, "main ended=0", "side true running"), requests: []*v1beta1.ContainerRecreateRequest{requested(time.Minute, completed)}, want: "stop [side] by sidecar-termination-u-2"},
		"all requests were in vain":           {pod: podOf(never, "main ended=0", "side true running"), requests: slicesOf(mostRequests, requested(time.Minute, completed)), want: "hold SidecarTerminationStuck"},
		"only an image, on a machine":         {pod: podOf(never, "main ended=0", "side image=quick running"), want: "replace the images of [side]"},
		"only an image, and it is on its way": {pod: podOf(never, "main ended=0", "side image=quick now=quick running", "lax true ignore running")},
		"both, on a machine":                  {pod: podOf(never, "main ended=0", "side true image=quick running"), want: "stop [side] by sidecar-termination-u"},
		"both, on a virtual node":             {pod: podOf(never, "main ended=0", "side true image=quick running", "other true running"), virtual: true, want: "replace the images of [side]"},
		"the node is gone":                    {pod: podOf(never, "main ended=0", "side true running"), noNode: true, want: "look again in 10s"},
		"nothing but sidecars":                {pod: podOf(never, "a true running", "b image=quick running"), want: "hold SidecarTerminatorNoMainContainer"},
		"no sidecars":                         {pod: podOf(never, "main ended=0", "side running")},
		"a Pod that runs for ever":            {pod: podOf(corev1.RestartPolicyAlways, "main ended=0", "side true running")},
		"a Pod that has ended": {pod: func() *corev1.Pod {
			p := podOf(never, "main ended=0", "side true running")
			p.Status.Phase = corev1.PodSucceeded
			return p
		}()},
		"a Pod that is being deleted": {pod: func() *corev1.Pod {
			p := podOf(never, "main ended=0", "side true running")
			p.DeletionTimestamp = &metav1.Time{Time: now}
			return p
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Pod: tc.pod, Requests: tc.requests, Now: now, Node: &corev1.Node{}}
			if tc.virtual {
				s.Node.Labels = map[string]string{"type": "virtual-kubelet"}
			}
			if tc.noNode {
				s.Node = nil
			}
			before := s.Pod.DeepCopy()
			if got := told(Plan(s)); got != tc.want {
				t.Errorf("plan: %s\nwant: %s", got, tc.want)
			}
			if diff := cmp.Diff(before, s.Pod); diff != "" {
				t.Errorf("the Pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func slicesOf(n int, r *v1beta1.ContainerRecreateRequest) []*v1beta1.ContainerRecreateRequest {
	var all []*v1beta1.ContainerRecreateRequest
	for range n {
		all = append(all, r)
	}
	return all
}

func TestWhatIsAskedForAndTold(t *testing.T) {
	p := podOf(corev1.RestartPolicyNever, "main ended=0", "a true running", "b true running")
	action := Plan(Snapshot{Pod: p, Now: now, Node: &corev1.Node{}}).Actions()[0]
	yes := true
	want := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "sidecar-termination-u", Namespace: "default", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "work", UID: "u", Controller: &yes}}},
		Spec: v1beta1.ContainerRecreateRequestSpec{PodName: "work", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "a"}, {Name: "b"}},
			Strategy: &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: "Ignore", ForceRecreate: true}},
	}
	if diff := cmp.Diff(plan.Object(want), action.After); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := action.Event + ": " + action.EventMessage; got != "SidecarTerminator: Kruise SidecarTerminator is trying to terminate sidecar [a b] using crr" {
		t.Errorf("event %s", got)
	}
	p = podOf(corev1.RestartPolicyNever, "main ended=2", "a true ignore running")
	after := Plan(Snapshot{Pod: p, Now: now, Node: &corev1.Node{}}).Actions()[0].After.(*corev1.Pod)
	conditions := []corev1.PodCondition{{Type: "SidecarTerminated", Status: corev1.ConditionTrue, Message: "Terminated by Sidecar Terminator", LastTransitionTime: metav1.NewTime(now)}}
	if diff := cmp.Diff(corev1.PodStatus{Phase: corev1.PodFailed, Conditions: conditions, ContainerStatuses: p.Status.ContainerStatuses}, after.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"apps.kruise.io/sidecars-terminated": "2026-01-01T12:00:00Z"}, after.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
