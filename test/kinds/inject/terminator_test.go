package inject

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/terminate"
)

// job returns a Job whose main container works for a second, and which has a sidecar with marks of its environment.
func job(policy, exitCode, marks string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  backoffLimit: 0
  template:
    metadata:
      labels: {app: work}
      annotations: {sim.kruise.io/run-for.main: 1s, sim.kruise.io/exit-code.main: "` + exitCode + `", sim.kruise.io/run-for.side: forever}
    spec:
      restartPolicy: ` + policy + `
      containers:
      - {name: main, image: i}
      - {name: side, image: "side:1", env: [` + marks + `]}
`
}

const (
	marked  = `{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "true"}`
	ignored = marked + `, {name: KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE, value: "true"}`
)

// worker returns the Pod of the Job.
func (e *env) worker() *corev1.Pod {
	e.Helper()
	var found *corev1.Pod
	e.Eventually("the Job has a Pod", func() error {
		var list corev1.PodList
		e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{"app": "work"}))
		if len(list.Items) == 0 {
			return errors.New("it has none")
		}
		found = &list.Items[0]
		return nil
	})
	return found
}

func (e *env) requests() []v1beta1.ContainerRecreateRequest {
	e.Helper()
	var list v1beta1.ContainerRecreateRequestList
	e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	return list.Items
}

// ended waits until the worker has a phase, and returns it.
func (e *env) ended(phase corev1.PodPhase) *corev1.Pod {
	e.Helper()
	var p *corev1.Pod
	e.Eventually("the Pod is "+string(phase), func() error {
		if p = e.worker(); p.Status.Phase != phase {
			return fmt.Errorf("it is %s", p.Status.Phase)
		}
		return nil
	})
	return p
}

func isTerminated(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == "SidecarTerminated" && c.Status == corev1.ConditionTrue
	})
}

// TestARequestStopsTheSidecar: the exit code of the sidecar counts, so that it is stopped where it runs. No daemon runs on a simulated node: the test
// stops it.
func TestARequestStopsTheSidecar(t *testing.T) {
	e := newEnv(t)
	e.apply(job("Never", "0", marked))
	p := e.worker()
	e.Eventually("there is a request", func() error {
		if len(e.requests()) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	r := e.requests()[0]
	if r.Name != "sidecar-termination-"+string(p.UID) || !metav1.IsControlledBy(&r, p) || len(r.Spec.Containers) != 1 || r.Spec.Containers[0].Name != "side" {
		t.Errorf("the request is %s of %+v, controlled by %+v", r.Name, r.Spec, r.OwnerReferences)
	}
	if s := r.Spec.Strategy; s == nil || !s.ForceRecreate || s.FailurePolicy != v1beta1.ContainerRecreateRequestFailurePolicyIgnore {
		t.Errorf("the strategy is %+v", s)
	}
	e.Eventually("the user is told, once", func() error {
		told := slices.DeleteFunc(e.Reasons(p.Name), func(reason string) bool { return reason != "SidecarTerminator" })
		if len(told) != 1 {
			return fmt.Errorf("there are %v", told)
		}
		return nil
	})
	e.annotate("sim.kruise.io/kill", "side/1")
	if p := e.ended(corev1.PodFailed); isTerminated(p) {
		t.Error("the Pod was ended by the manager and not by its node")
	}
	if n := len(e.requests()); n != 1 {
		t.Errorf("there are %d requests", n)
	}
}

func (e *env) annotate(key, value string) {
	e.Helper()
	p := e.worker()
	before := p.DeepCopy()
	p.Annotations[key] = value
	e.Must(e.Patch(e.Ctx, p, client.MergeFrom(before)))
}

func TestAnExitCodeThatDoesNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		policy, exitCode, marks string
		want                    corev1.PodPhase
	}{
		"the work is done well":                      {"Never", "0", ignored, corev1.PodSucceeded},
		"the work is done badly":                     {"Never", "1", ignored, corev1.PodFailed},
		"a sidecar that would run again if it fails": {"OnFailure", "0", marked, corev1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.apply(job(tc.policy, tc.exitCode, tc.marks))
			if p := e.ended(tc.want); !isTerminated(p) {
				t.Errorf("conditions are %+v", p.Status.Conditions)
			}
			e.Eventually("the Job has ended", func() error {
				j := &batchv1.Job{}
				e.Must(e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "work"}, j))
				if j.Status.Succeeded+j.Status.Failed != 1 || (j.Status.Succeeded == 1) != (tc.want == corev1.PodSucceeded) {
					return fmt.Errorf("its status is %+v", j.Status)
				}
				return nil
			})
			if n := len(e.requests()); n != 0 {
				t.Errorf("there are %d requests", n)
			}
			e.Never("the Pod runs again", func() bool { return e.worker().Status.Phase != tc.want })
		})
	}
}

func TestAFailureIsNotTheEndWhereContainersRestart(t *testing.T) {
	e := newEnv(t)
	e.apply(strings.Replace(job("OnFailure", "1", marked), "backoffLimit: 0", "backoffLimit: 5", 1))
	e.Eventually("main has failed once", func() error {
		for _, status := range e.worker().Status.ContainerStatuses {
			if status.Name == "main" && status.RestartCount > 0 {
				return nil
			}
		}
		return errors.New("it has not")
	})
	if p := e.worker(); p.Status.Phase != corev1.PodRunning || len(e.requests()) > 0 {
		t.Fatalf("the Pod is %s, and there are %d requests", p.Status.Phase, len(e.requests()))
	}
	e.annotate("sim.kruise.io/exit-code.main", "0")
	e.ended(corev1.PodSucceeded)
}

func TestOnVirtualNodesTheImageIsReplaced(t *testing.T) {
	e := newEnv(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "virtual-" + e.Namespace, Labels: map[string]string{"type": "virtual-kubelet"}}}
	e.Must(e.Create(e.Ctx, node))
	t.Cleanup(func() { e.forget(node) })
	p := e.newPod(`
metadata: {name: work, labels: {app: work}}
spec:
  nodeName: ` + node.Name + `
  restartPolicy: Never
  containers:
  - {name: main, image: i}
  - {name: side, image: "side:1", env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE, value: "quick:1"}, ` + marked + `]}
`)
	// Nobody looks after this node but the test.
	before := p.DeepCopy()
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", Image: "i", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
		{Name: "side", Image: "side:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	e.Must(e.Status().Patch(e.Ctx, p, client.MergeFrom(before)))
	e.Eventually("the sidecar has the image that ends by itself", func() error {
		if image := e.worker().Spec.Containers[1].Image; image != "quick:1" {
			return fmt.Errorf("it has %s", image)
		}
		return nil
	})
	if n := len(e.requests()); n != 0 {
		t.Errorf("there are %d requests", n)
	}
	e.Must(e.Delete(e.Ctx, p, client.GracePeriodSeconds(0)))
}

func TestPodsThatAreNotConcernedGoOn(t *testing.T) {
	e := newEnv(t)
	all := strings.Replace(job("Never", "0", marked), "{name: main, image: i}", "{name: main, image: i, env: ["+marked+"]}", 1)
	e.apply(all)
	e.Eventually("the user is told that nothing says when the work is done", func() error {
		if told := e.Reasons(e.worker().Name); !slices.Contains(told, "SidecarTerminatorNoMainContainer") {
			return fmt.Errorf("there are %v", told)
		}
		return nil
	})
	plain := e.in(e.NewNamespace(nil))
	plain.apply(job("Never", "0", ""))
	for _, one := range []*env{e, plain} {
		one.Eventually("main has ended", func() error {
			for _, status := range one.worker().Status.ContainerStatuses {
				if status.Name == "main" && status.State.Terminated != nil {
					return nil
				}
			}
			return errors.New("it has not")
		})
		one.Never("the sidecar is stopped", func() bool {
			return one.worker().Status.Phase != corev1.PodRunning || len(one.requests()) > 0
		})
	}
}

func TestTheTerminatorExample(t *testing.T) {
	e := newEnv(t)
	e.example("job-sidecar-terminator.yaml")
	e.Eventually("it is a Job with a marked sidecar", func() error {
		var list corev1.PodList
		e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		if len(list.Items) != 1 || !terminate.Marked(&list.Items[0]) || !terminate.HasMain(&list.Items[0]) {
			return fmt.Errorf("there are %d Pods", len(list.Items))
		}
		return nil
	})
}
