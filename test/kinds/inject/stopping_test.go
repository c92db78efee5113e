package inject

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// mainHasEnded waits until the container main of the worker has ended once.
func (e *env) mainHasEnded() {
	e.Helper()
	e.Eventually("main has ended", func() error {
		status := pod.ContainerStatus(e.worker(), "main")
		if status == nil || status.State.Terminated == nil && status.RestartCount == 0 {
			return fmt.Errorf("main is %+v", status)
		}
		return nil
	})
}

// TestASidecarThatCountsIsStoppedBeforeOthers has one sidecar whose exit code counts and one whose does not: the Pod is not ended before the first one
// has stopped.
func TestASidecarThatCountsIsStoppedBeforeOthers(t *testing.T) {
	e := newEnv(t)
	text := strings.Replace(job("Never", "0", marked), "      containers:\n", "      containers:\n      - {name: quiet, image: i, env: ["+ignored+"]}\n", 1)
	text = strings.Replace(text, "sim.kruise.io/run-for.side: forever", "sim.kruise.io/run-for.side: forever, sim.kruise.io/run-for.quiet: forever", 1)
	e.apply(text)
	e.Eventually("there is a request", func() error {
		if len(e.requests()) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	if r := e.requests()[0]; len(r.Spec.Containers) != 1 || r.Spec.Containers[0].Name != "side" {
		t.Errorf("the request is for %+v", r.Spec.Containers)
	}
	e.Never("the Pod ends", func() bool { return e.worker().Status.Phase != corev1.PodRunning })
	e.annotate("sim.kruise.io/kill", "side/1")
	if p := e.ended(corev1.PodSucceeded); !isTerminated(p) {
		t.Errorf("conditions are %+v", p.Status.Conditions)
	}
	if n := len(e.requests()); n != 1 {
		t.Errorf("there are %d requests", n)
	}
}

// TestAnInjectedSidecarDoesNotKeepAJobFromEnding has the sidecar come from a SidecarSet, which counts the Pod as long as that works.
func TestAnInjectedSidecarDoesNotKeepAJobFromEnding(t *testing.T) {
	e := newEnv(t)
	set := e.sidecarSet("a", `{containers: [{name: side, image: i, env: [`+ignored+`]}]}`)
	e.becomes(`{metadata: {name: trial, labels: `+e.selected()+`}, spec: {containers: [{name: app, image: i}]}}`, containers("side app"))
	text := strings.Replace(job("Never", "0", ""), "labels: {app: work}", "labels: {app: work, test: "+e.Namespace+"}", 1)
	text = strings.Replace(text, `      - {name: side, image: "side:1", env: []}`+"\n", "", 1)
	e.apply(strings.Replace(text, "run-for.main: 1s", "run-for.main: 4s", 1))
	counts := func(want int32) {
		e.Eventually(fmt.Sprintf("the SidecarSet counts %d Pods", want), func() error {
			e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(set), set))
			if got := set.Status.MatchedPods; got != want || set.Status.ObservedGeneration == 0 {
				return fmt.Errorf("it counts %d", got)
			}
			return nil
		})
	}
	counts(1)
	if p := e.ended(corev1.PodSucceeded); !isTerminated(p) || len(p.Spec.Containers) != 2 {
		t.Errorf("it has the containers %+v and the conditions %+v", p.Spec.Containers, p.Status.Conditions)
	}
	counts(0)
}

// TestAPodThatIsToRunForEverGoesOn has a marked sidecar in a Pod whose main container starts again whenever it ends.
func TestAPodThatIsToRunForEverGoesOn(t *testing.T) {
	e := newEnv(t)
	e.newPod(`
metadata: {name: web, labels: {app: work}, annotations: {sim.kruise.io/run-for.main: 1s}}
spec:
  restartPolicy: Always
  containers: [{name: main, image: i}, {name: side, image: i, env: [` + ignored + `]}]
`)
	e.mainHasEnded()
	e.Never("the sidecar is stopped", func() bool {
		p := e.worker()
		side := pod.ContainerStatus(p, "side")
		return p.Status.Phase != corev1.PodRunning || side.State.Running == nil || side.RestartCount > 0 || len(e.requests()) > 0
	})
}

// TestWithoutTheGateNothingIsStopped runs the manager as it is unless its administrator asks for more.
func TestWithoutTheGateNothingIsStopped(t *testing.T) {
	e := newSerialEnv(t)
	e.withArgs("--feature-gates=SidecarTerminator=false")
	e.apply(job("Never", "0", ignored))
	e.mainHasEnded()
	e.Never("the sidecar is stopped", func() bool { return e.worker().Status.Phase != corev1.PodRunning || len(e.requests()) > 0 })
}
