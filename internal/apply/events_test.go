package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// emitted returns the events that came so far.
func (b *bench) emitted() []string {
	var events []string
	for {
		select {
		case event := <-b.events.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

func TestEventsFollowWrites(t *testing.T) {
	cases := map[string]struct {
		err  error
		want []string
	}{
		"a write that succeeded is told": {want: []string{"Normal SuccessfulCreate succeed to create pod a"}},
		"a write that failed is a warning": {
			err:  errors.New("quota"),
			want: []string{"Warning FailedCreate creating a: quota"},
		},
		"a conflict is nothing to tell": {
			err: apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errors.New("changed")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.before = func(string) error { return tc.err }
			b.run(t, plan.Stage{{{
				Verb: plan.Create, After: b.pod("a"),
				Event: "SuccessfulCreate", EventMessage: "succeed to create pod a", FailedEvent: "FailedCreate",
			}}})
			if diff := cmp.Diff(tc.want, b.emitted()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldsAreToldOnce(t *testing.T) {
	b := newBench(t)
	limited := plan.Hold{Why: "limit 3", Event: "ScaleUpLimited"}
	var got [][]string
	for _, holds := range [][]plan.Hold{
		{limited, {Why: "an ordinary wait"}},
		{limited},
		{{Why: "limit 2", Event: "ScaleUpLimited"}},
		{},
		{limited},
	} {
		b.EmitHolds(b.owner, plan.Plan{Holds: holds})
		got = append(got, b.emitted())
	}
	want := [][]string{{"Warning ScaleUpLimited limit 3"}, nil, {"Warning ScaleUpLimited limit 2"}, nil, {"Warning ScaleUpLimited limit 3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events of each pass (-want +got):\n%s", diff)
	}
}
