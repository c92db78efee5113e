package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// ask makes a request for containers of a Pod.
func (e *env) ask(name, pod, spec string, containers ...string) *v1beta1.ContainerRecreateRequest {
	e.Helper()
	r := parse[v1beta1.ContainerRecreateRequest](e, spec)
	r.Name, r.Spec.PodName = name, pod
	for _, c := range containers {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: c})
	}
	e.Must(e.Client.Create(e.Ctx, r))
	return r
}

// await waits until a request is in a phase.
func (e *env) await(r *v1beta1.ContainerRecreateRequest, phase v1beta1.ContainerRecreateRequestPhase) {
	e.Helper()
	e.Eventually(r.Name+" is "+string(phase), func() error {
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if r.Status.Phase != phase {
			return fmt.Errorf("it is %+v", r.Status)
		}
		return nil
	})
}

// outcome is how a request has ended, in words.
func outcome(r *v1beta1.ContainerRecreateRequest) string {
	var out []string
	for _, s := range r.Status.ContainerRecreateStates {
		out = append(out, s.Name+" "+string(s.Phase))
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, "Succeeded"); c != nil {
		out = append(out, "success "+string(c.Status))
	}
	return strings.TrimSpace(strings.Join(out, ", ") + " " + r.Status.Message)
}

// snapshot is what a request tells of the new containers, in words.
func snapshot(r *v1beta1.ContainerRecreateRequest) string {
	var out []string
	for _, s := range r.Status.ContainerStatusSnapshot {
		out = append(out, fmt.Sprintf("%s ready %t, restarts %d", s.Name, s.Ready, s.RestartCount))
	}
	return strings.Join(out, "; ")
}

func (e *env) expect(what, got, want string) {
	e.Helper()
	if got != want {
		e.Errorf("%s: %q, want %q", what, got, want)
	}
}

// calls tells what the runtime was asked to do with a Pod's containers: verb, container and seconds.
func (e *env) calls(p *corev1.Pod) string {
	var out []string
	for _, c := range e.node.Calls(string(p.UID)) {
		out = append(out, fmt.Sprintf("%s %s %d", c.Verb, c.Container, c.Timeout))
	}
	return strings.Join(out, ", ")
}

func (e *env) restarts(p *corev1.Pod) string {
	e.Helper()
	e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
	var out []string
	for _, s := range p.Status.ContainerStatuses {
		out = append(out, fmt.Sprintf("%s %d", s.Name, s.RestartCount))
	}
	return strings.Join(out, ", ")
}

func TestContainerIsRecreated(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "main", "side")
	r := e.ask("r", "p", `spec: {ttlSecondsAfterFinished: 10}`, "main")
	e.expect("Pod of the request", r.Labels[keys.RecreatePodUID], string(p.UID))
	e.expect("node of the request", r.Labels[keys.RecreateNodeName], e.node.Name)
	e.expect("active", r.Labels[keys.RecreateActive], "true")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "main Succeeded, success True")
	e.expect("new containers", snapshot(r), "main ready true, restarts 1")
	e.expect("calls", e.calls(p), "stop main 30")
	e.expect("restarts", e.restarts(p), "main 1, side 0")
	e.Eventually("it is closed", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), r))
		if _, active := r.Labels[keys.RecreateActive]; active {
			return errors.New("it is still active")
		}
		return nil
	})
	e.Eventually("it is deleted", func() error {
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), r); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

func TestContainersAreRecreatedInOrder(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "a", "b", "c")
	began := time.Now()
	r := e.ask("r", "p", `spec: {strategy: {orderedRecreate: true, minStartedSeconds: 2}}`, "b", "a")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "b Succeeded, a Succeeded, success True")
	e.expect("new containers", snapshot(r), "b ready true, restarts 1; a ready true, restarts 1")
	e.expect("calls", e.calls(p), "stop b 30, stop a 30")
	e.expect("restarts", e.restarts(p), "a 1, b 1, c 0")
	calls := e.node.Calls(string(p.UID))
	if between := calls[1].At.Sub(calls[0].At); between < 2*time.Second {
		t.Errorf("the second container was stopped %s after the first, which had to run for 2 s before", between)
	}
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("it took %s, with two containers that have to run for 2 s", took)
	}
}

func TestPodIsOutOfServiceBefore(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "main")
	r := e.ask("r", "p", `spec: {strategy: {unreadyGracePeriodSeconds: 5}}`, "main")
	e.Eventually("the Pod is out of service", func() error { return e.condition(p, pub.KruisePodReady, corev1.ConditionFalse) })
	e.Must(e.condition(p, corev1.PodReady, corev1.ConditionFalse))
	e.await(r, v1beta1.ContainerRecreateRequestRecreating)
	var since metav1.Time
	e.Eventually("the grace has begun", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), r))
		c := meta.FindStatusCondition(r.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
		if c == nil {
			return errors.New("there is no condition")
		}
		since = c.LastTransitionTime
		return nil
	})
	older := &v1alpha1.ContainerRecreateRequest{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), older))
	e.expect("the older version's annotation", older.Annotations[keys.RecreateUnreadyAcquired], since.UTC().Format(time.RFC3339))
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "main Succeeded, success True")
	if stopped := e.node.Calls(string(p.UID))[0].At; stopped.Sub(since.Time) < 5*time.Second {
		t.Errorf("it was stopped %s after the grace had begun, want 5 s at least", stopped.Sub(since.Time))
	}
	e.Eventually("the Pod is back", func() error { return e.condition(p, corev1.PodReady, corev1.ConditionTrue) })
	e.Eventually("the request lets go", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), r))
		if len(r.Finalizers) > 0 {
			return fmt.Errorf("finalizers %v", r.Finalizers)
		}
		return nil
	})
}

func TestRequestsOfOnePodTakeTurns(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "a", "b")
	e.node.OnStop(4 * time.Second) // so long that the others come while the first is under way
	first := e.ask("first", "p", `{}`, "a")
	e.await(first, v1beta1.ContainerRecreateRequestRecreating)
	second := e.ask("second", "p", `{}`, "b")
	third := e.ask("third", "p", `{}`, "a")
	e.await(second, v1beta1.ContainerRecreateRequestPending)
	e.await(third, v1beta1.ContainerRecreateRequestPending)
	e.Must(e.Client.Delete(e.Ctx, first))
	e.await(second, v1beta1.ContainerRecreateRequestCompleted)
	e.await(third, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("second", outcome(second), "b Succeeded, success True")
	e.expect("third, whose container the first had begun to stop", outcome(third), "a Succeeded, success True")
	e.expect("calls", e.calls(p), "stop a 30, stop b 30")
}

func TestFailures(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "a", "b")
	e.node.RefuseStop("a", errors.New("it is stuck"))
	r := e.ask("fails", "p", `{}`, "a", "b")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "a Failed, b Pending, success False")
	if got := r.Status.ContainerRecreateStates[0].Message; !strings.HasPrefix(got, "kill container error: ") || !strings.Contains(got, "it is stuck") {
		t.Errorf("message %q", got)
	}
	r = e.ask("goes-on", "p", `spec: {strategy: {failurePolicy: Ignore}}`, "a", "b")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "a Failed, b Succeeded, success False")
	e.expect("restarts", e.restarts(p), "a 0, b 1")
}

func TestPodsThatRestartNothing(t *testing.T) {
	e := newEnv(t)
	e.runPod("p", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }, "a", "b")
	r := e.ask("r", "p", `spec: {strategy: {failurePolicy: Ignore}}`, "a")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "a Failed, success False")
	e.expect("message", r.Status.ContainerRecreateStates[0].Message, "container will not be restarted because of restartPolicy")
}

func TestHooksRunWithinTheGrace(t *testing.T) {
	e := newEnv(t)
	preStop := func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
		}
	}
	takes := 2050 * time.Millisecond
	e.node.OnExec(func(ctx context.Context, _ string, _ []string) (*runtimeapi.ExecSyncResponse, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(takes):
		}
		return &runtimeapi.ExecSyncResponse{}, nil
	})
	p := e.runPod("p", preStop, "main")
	r := e.ask("r", "p", `spec: {strategy: {terminationGracePeriodSeconds: 10}}`, "main")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("calls", e.calls(p), "exec main 10, stop main 8")

	p = e.runPod("slow", preStop, "main")
	r = e.ask("slow", "slow", `spec: {strategy: {terminationGracePeriodSeconds: 1}}`, "main")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("calls", e.calls(p), "exec main 1, stop main 2")
	e.expect("outcome", outcome(r), "main Succeeded, success True")
	e.Eventually("the events tell", func() error { return e.told(p, "Killing", "FailedPreStopHook") })
}

// told complains when there is no event of one of the reasons about a Pod.
func (e *env) told(p *corev1.Pod, reasons ...string) error {
	var list corev1.EventList
	if err := e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)); err != nil {
		return err
	}
	found := map[string]bool{}
	for _, event := range list.Items {
		if event.InvolvedObject.UID == p.UID {
			found[event.Reason] = true
		}
	}
	for _, reason := range reasons {
		if !found[reason] {
			return fmt.Errorf("there is no event %s: %v", reason, found)
		}
	}
	return nil
}

func TestContainersThatRestartByThemselves(t *testing.T) {
	for name, tc := range map[string]struct{ spec, calls string }{
		"are left alone": {`{}`, ""},
		"but by force":   {`spec: {strategy: {forceRecreate: true}}`, "stop main 30"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			p := e.runPod("p", nil, "main")
			e.killDaemon()
			r := e.ask("r", "p", tc.spec, "main")
			e.node.End(p, "main", 1)
			e.Eventually("it has restarted", func() error {
				if got := e.restarts(p); got != "main 1" {
					return errors.New(got)
				}
				return nil
			})
			e.startDaemon()
			e.await(r, v1beta1.ContainerRecreateRequestCompleted)
			e.expect("outcome", outcome(r), "main Succeeded, success True")
			e.expect("calls", e.calls(p), tc.calls)
		})
	}
}

// TestDaemonIsKilledInTheMiddle: first while the hook runs, which is cut off with it; then while the container takes its time to end.
func TestDaemonIsKilledInTheMiddle(t *testing.T) {
	for name, force := range map[string]string{"": "false", "by force": "true"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.node.OnExec(func(ctx context.Context, _ string, _ []string) (*runtimeapi.ExecSyncResponse, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(time.Second):
				}
				return &runtimeapi.ExecSyncResponse{}, nil
			})
			e.node.OnStop(2 * time.Second)
			p := e.runPod("p", func(p *corev1.Pod) {
				p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
					PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
				}
			}, "a", "b")
			r := e.ask("r", "p", `spec: {strategy: {forceRecreate: `+force+`}}`, "a", "b")
			for _, verb := range []string{"exec", "stop"} {
				e.Eventually(verb+" is under way", func() error { return e.called(p, verb) })
				e.killDaemon()
				e.startDaemon()
			}
			e.await(r, v1beta1.ContainerRecreateRequestCompleted)
			e.expect("outcome", outcome(r), "a Succeeded, b Succeeded, success True")
			e.expect("restarts", e.restarts(p), "a 1, b 1")
			stopped := map[string]bool{}
			for _, c := range e.node.Calls(string(p.UID)) {
				if c.Verb == "stop" {
					stopped[c.ID] = true
				}
			}
			if len(stopped) != 2 {
				t.Errorf("the containers that were stopped are %v: %s", stopped, e.calls(p))
			}
		})
	}
}

func (e *env) called(p *corev1.Pod, verb string) error {
	for _, c := range e.node.Calls(string(p.UID)) {
		if c.Verb == verb {
			return nil
		}
	}
	return errors.New("nothing is called")
}

func TestRequestsEndWithTheirPodAndDeadline(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "main")
	e.node.OnStop(20 * time.Second)
	r := e.ask("late", "p", `spec: {activeDeadlineSeconds: 3}`, "main")
	began := time.Now()
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "main Recreating, success False recreating has exceeded the activeDeadlineSeconds")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it ended after %s, want 3 s, and not the 20 s that its container takes", took)
	}
	r = e.ask("gone", "p", `{}`, "main")
	now := int64(0)
	e.Must(e.Client.Delete(e.Ctx, p, &client.DeleteOptions{GracePeriodSeconds: &now}))
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("message", r.Status.Message, "pod has gone")
}

func TestRestartExample(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("web-0", nil, "app", "proxy")
	r := parse[v1beta1.ContainerRecreateRequest](e, e.example("container-restart-ordered.yaml"))
	e.Must(e.Client.Create(e.Ctx, r))
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "proxy Succeeded, app Succeeded, success True")
	e.expect("calls", e.calls(p), "stop proxy 30, stop app 30")
}
