package disruption

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// TestWhatIsRecreatedIsJudgedOnce: first as an update, by the controller; the deletion that follows is free.
func TestWhatIsRecreatedIsJudgedOnce(t *testing.T) {
	c := newCourt(budget(1))
	gate := Gate{c.Judge}
	if held, err := gate.Permit(t.Context(), pod(1), nil); held != "" || err != nil {
		t.Fatalf("the first: %q, %v", held, err)
	}
	if held, err := gate.Permit(t.Context(), pod(2), nil); held != "web" || err != nil {
		t.Fatalf("the second: %q, %v", held, err)
	}
	if verdict, err := c.Permit(t.Context(), Request{Pod: pod(1), Operation: v1beta1.PubDeleteOperation}); !verdict.Allowed() || err != nil {
		t.Fatalf("the deletion of the first: %+v, %v", verdict, err)
	}
	if _, ok := c.last().Status.UnavailablePods["web-1"]; !ok || c.writes != 1 {
		t.Errorf("after %d writes: %+v", c.writes, c.last().Status)
	}
}

// TestAControllerThatTakesAPodOutOfServiceUpdatesIt: also where only its status says so as yet.
func TestAControllerThatTakesAPodOutOfServiceUpdatesIt(t *testing.T) {
	out := pod(1, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })
	c := newCourt(budget(0))
	if held, err := (Gate{c.Judge}).Permit(t.Context(), pod(1), out); held != "web" || err != nil {
		t.Errorf("%q, %v", held, err)
	}
}
