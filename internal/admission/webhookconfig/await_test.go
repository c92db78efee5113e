package webhookconfig

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// reads counts what is asked of the API server.
type reads struct {
	client.Reader
	n int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	r.n++
	return r.Reader.Get(ctx, key, o, options...)
}

// created reports whether a Pod gets past the step.
func created(ctx context.Context, t *testing.T, step pods.Step, app string) bool {
	t.Helper()
	raw, err := json.Marshal(podOf(app))
	if err != nil {
		t.Fatal(err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "default"}}
	request.Object.Raw = raw
	return pods.Chain{Steps: []pods.Step{step}}.Handle(ctx, request).Allowed
}

func TestAPodWaitsForTheSidecarSetsBeforeIt(t *testing.T) {
	stored := func(w *world) { w.must(w.client.Create(context.Background(), setOf("agent", "web"))) }
	cases := map[string]struct {
		app string
		// before happens before the Pod comes; known says from which look on the SidecarSet is known.
		before    func(*world)
		known     int
		wantLooks int
		wantReads int
	}{
		"of which the news comes later": {"web", stored, 4, 4, 1},
		"that are known":                {"web", stored, 1, 1, 0},
		"that are not stored yet":       {"web", func(*world) {}, 100, 1, 1},
		"that don't select it":          {"db", stored, 100, 0, 0},
		"that have been replaced since": {"web", func(w *world) {
			other := setOf("agent", "web")
			other.UID = "other"
			w.must(w.client.Create(context.Background(), other))
		}, 100, 1, 1},
		"none, when the configuration is gone": {"web",
			func(w *world) { w.must(w.client.Delete(context.Background(), w.configuration())) }, 100, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.leader.Admit(context.Background(), nil, setOf("agent", "web")))
			tc.before(w)
			looks, live := 0, &reads{Reader: w.client}
			step := Await(AwaitOptions{Configuration: w.leader.Mutating.Name, Cached: w.client, Live: live,
				Known: func() (*inject.Candidates, error) {
					looks++
					if looks < tc.known {
						return inject.NewCandidates(), nil
					}
					return inject.NewCandidates(&inject.Candidate{Set: setOf("agent", "web")}), nil
				}})
			if !created(context.Background(), t, step, tc.app) {
				t.Error("the Pod is refused")
			}
			if looks != tc.wantLooks || live.n != tc.wantReads {
				t.Errorf("there were %d looks and %d reads, want %d and %d", looks, live.n, tc.wantLooks, tc.wantReads)
			}
		})
	}
}

func TestAPodIsNotCreatedWithoutASidecarSetThatIsStored(t *testing.T) {
	w := newWorld(t)
	w.must(w.leader.Admit(context.Background(), nil, setOf("agent", "web")))
	w.must(w.client.Create(context.Background(), setOf("agent", "web")))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	step := Await(AwaitOptions{Configuration: w.leader.Mutating.Name, Cached: w.client, Live: w.client,
		Known: func() (*inject.Candidates, error) { return inject.NewCandidates(), nil }})
	if created(ctx, t, step, "web") {
		t.Error("a Pod is let through although its SidecarSet is not known")
	}
	known := setOf("agent", "web")
	known.Generation = 2
	step = Await(AwaitOptions{Configuration: w.leader.Mutating.Name, Cached: w.client, Live: w.client,
		Known: func() (*inject.Candidates, error) {
			return inject.NewCandidates(&inject.Candidate{Set: known}), nil
		}})
	if !created(context.Background(), t, step, "web") {
		t.Error("a Pod is refused although a later version of its SidecarSet is known")
	}
}

// TestASidecarSetIsPendingForAWhile: other managers see a SidecarSet later than the leader, which must not forget it before.
func TestASidecarSetIsPendingForAWhile(t *testing.T) {
	w := newWorld(t)
	w.must(w.leader.Admit(context.Background(), nil, setOf("agent", "web")))
	w.must(w.client.Create(context.Background(), setOf("agent", "web")))
	again := w.lead().RequeueAfter
	if left := w.configuration().Annotations; len(left) != 1 || again <= 0 || again > time.Minute {
		t.Errorf("after the first look the annotations are %v, and the next one comes after %s", left, again)
	}
	w.now = w.now.Add(again)
	w.lead()
	if left := w.configuration().Annotations; len(left) != 0 {
		t.Errorf("in the end the annotations are %v", left)
	}
	var sets v1beta1.SidecarSetList
	w.must(w.client.List(context.Background(), &sets))
	if len(w.sent(podOf("web"), "default", nil)) != 1 {
		t.Error("the Pods of the SidecarSet are not sent")
	}
}
