package apply

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// TestRefusedOptionalCreationsAreLeftAtThat: they are asked for less and less often, and told of once in the same words.
func TestRefusedOptionalCreationsAreLeftAtThat(t *testing.T) {
	b := newBench(t)
	why := "no"
	b.before = func(what string) error {
		switch {
		case what != "create spare" || why == "":
			return nil
		case why == "busy":
			return apierrors.NewTooManyRequests(why, 1)
		default:
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "spare", errors.New(why))
		}
	}
	image := "app:v1"
	pass := func() (writes, events []string) {
		b.writes = nil
		spare := b.pod("spare")
		spare.Spec.Containers[0].Image = image
		after := create(b.pod("after"))[0]
		after.Optional = true
		b.run(t, plan.Stage{{{
			Verb: plan.Create, After: spare, Optional: true, Event: "Created", EventMessage: "it is there", FailedEvent: "Failed",
		}, after}})
		return b.writes, b.emitted()
	}
	tried := []string{"create spare"}
	for i, step := range []struct {
		what           string
		wait           time.Duration
		change         func()
		writes, events []string
	}{
		{what: "it is refused", writes: tried, events: []string{`Warning Failed creating spare: pods "spare" is forbidden: no`}},
		{what: "it is not tried in the next pass"},
		{what: "nor a moment later", wait: 9 * time.Second},
		{what: "it is tried again later, and no event tells the same", wait: time.Second, writes: tried},
		{what: "then it is left alone for twice as long", wait: 19 * time.Second},
		{what: "and tried again", wait: time.Second, writes: tried},
		{what: "another one of the same name is tried at once", change: func() { image = "app:v2" }, writes: tried},
		{what: "another reason is told", wait: time.Hour, change: func() { why = "never" }, writes: tried, events: []string{`Warning Failed creating spare: pods "spare" is forbidden: never`}},
		{what: "a server that is busy has refused nothing", wait: time.Hour, change: func() { why = "busy" }, writes: tried, events: []string{"Warning Failed creating spare: busy"}},
		{what: "it is tried again at once", writes: tried, events: []string{"Warning Failed creating spare: busy"}},
		{what: "what is let through goes on", change: func() { why = "" }, writes: []string{"create spare", "create after"}, events: []string{"Normal Created it is there"}},
	} {
		b.cluster.Sleep(step.wait)
		if step.change != nil {
			step.change()
		}
		writes, events := pass()
		if !slices.Equal(writes, step.writes) {
			t.Errorf("%d, %s: writes %v, want %v", i, step.what, writes, step.writes)
		}
		if diff := cmp.Diff(step.events, events); diff != "" {
			t.Errorf("%d, %s: events (-want +got):\n%s", i, step.what, diff)
		}
	}
}

// TestOtherCreationsAreTriedInEveryPass: somebody waits for them.
func TestOtherCreationsAreTriedInEveryPass(t *testing.T) {
	b := newBench(t)
	b.before = func(string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota"))
	}
	for range 3 {
		b.run(t, plan.Stage{create(b.pod("a"))})
	}
	if diff := cmp.Diff([]string{"create a", "create a", "create a"}, b.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
