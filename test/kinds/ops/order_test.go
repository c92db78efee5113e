package ops

import (
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestContainersAreRecreatedWithoutOrder: one stop comes after the other, and none waits until the container before is back.
func TestContainersAreRecreatedWithoutOrder(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", nil, "a", "b")
	before := *p
	r := e.ask("r", "p", `spec: {strategy: {minStartedSeconds: 5}}`, "a", "b")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "a Succeeded, b Succeeded, success True")
	e.expect("calls", e.calls(p), "stop a 30, stop b 30")
	e.expect("restarts", e.restarts(p), "a 1, b 1")
	calls := e.node.Calls(string(p.UID))
	if between := calls[1].At.Sub(calls[0].At); between >= 5*time.Second {
		t.Errorf("the second container was stopped %s after the first: it waited for it", between)
	}
	if p.UID != before.UID || p.Status.PodIP != before.Status.PodIP || r.Status.Message != "" {
		t.Errorf(
			"the Pod was %s at %s, is %s at %s; the request says %q", before.UID, before.Status.PodIP, p.UID, p.Status.PodIP,
			r.Status.Message,
		)
	}
}
