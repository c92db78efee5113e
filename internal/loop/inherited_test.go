package loop

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// questioned counts the questions for the version of Pods, which is 100.
type questioned struct {
	oneOwner
	questions int
}

func (q *questioned) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.Limit == 1 && o.Raw == nil {
		q.questions++
	}
	list.SetResourceVersion("100")
	return nil
}

// TestAnInheritedOwnerIsNotPlannedForFromAnOlderCache: what the leader before did last, the cache of the new one may not show yet.
func TestAnInheritedOwnerIsNotPlannedForFromAnOlderCache(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	const cached, live = "cached", "live"
	for name, tc := range map[string]struct {
		created time.Duration
		initial bool
		// replaces means that the cache tells of the owner as the successor of another one.
		replaces bool
		seen     string
		idle     bool
		disrupts bool
		// others means that owners own no Pods.
		others bool
		waits  time.Duration
		want   []string
		asks   int
	}{
		"at first nothing is written":                                  {initial: true, seen: "99", asks: 1},
		"after a moment it is read live":                               {initial: true, seen: "99", waits: time.Second, want: []string{live}, asks: 1},
		"a cache that has come as far is good enough":                  {initial: true, seen: "100", want: []string{cached}, asks: 1},
		"versions are numbers":                                         {initial: true, seen: "1000", want: []string{cached}, asks: 1},
		"what takes Pods of others out of service waits more":          {initial: true, seen: "99", disrupts: true, waits: time.Second, asks: 1},
		"and not for ever":                                             {initial: true, seen: "99", disrupts: true, waits: time.Minute, want: []string{live}, asks: 1},
		"an owner without anything to do costs no question":            {initial: true, seen: "99", idle: true},
		"one that was created since then costs no question":            {created: time.Second, seen: "99", want: []string{cached}},
		"one that is older, but was heard of later, is no new":         {created: -time.Second, seen: "99", asks: 1},
		"owners of other objects are read live at once, and only once": {initial: true, seen: "99", others: true, waits: time.Second, want: []string{live, cached}, asks: 1},
		"nor is one that was heard of in place of another":             {created: -time.Second, replaces: true, seen: "99", asks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			now := began
			owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", CreationTimestamp: metav1.NewTime(began.Add(tc.created))}}
			server := &questioned{oneOwner: oneOwner{owner: owner}}
			executor := &apply.Executor{Config: apply.Config{
				Writer: server, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(10), Parallel: 1, Now: func() time.Time { return now },
				Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return tc.seen, nil },
			}}
			var wrote []string
			owns := []client.Object{&corev1.Pod{}}
			if tc.others {
				owns = nil
			}
			l := New(Kind[*corev1.Pod, string, corev1.PodStatus]{
				Owns: owns, Disrupts: tc.disrupts,
				Read: func(_ context.Context, r Reads, _ *corev1.Pod) (string, error) {
					if r.Indexed {
						return cached, nil
					}
					return live, nil
				},
				Plan: func(from string) plan.Plan {
					if tc.idle {
						return plan.Plan{}
					}
					return plan.Plan{Stages: []plan.Stage{{{{Verb: plan.Create, After: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: from}}}}}}}
				},
				Remember: func(_ string, done apply.Outcome) {
					for _, result := range done.Results {
						wrote = append(wrote, result.Action.After.GetName())
					}
				},
			}, Runtime{Executor: executor}, observe.Reader{Reader: server, Indexed: true}, observe.Reader{Reader: server})
			l.Begin()
			events, err := l.Events()
			if err != nil {
				t.Fatal(err)
			}
			if hear := events[0].Handler; tc.replaces {
				former := owner.DeepCopy()
				former.UID = "former"
				hear.Update(t.Context(), event.UpdateEvent{ObjectOld: former, ObjectNew: owner}, &added{})
			} else {
				hear.Create(t.Context(), event.CreateEvent{Object: owner, IsInInitialList: tc.initial}, &added{})
			}
			pass := func() {
				if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
					t.Fatal(err)
				}
			}
			pass()
			if tc.waits > 0 {
				now = now.Add(tc.waits)
				pass()
			}
			if diff := cmp.Diff(tc.want, wrote); diff != "" || server.questions != tc.asks {
				t.Errorf("%d questions, want %d; written by plans of what was read (-want +got):\n%s", server.questions, tc.asks, diff)
			}
		})
	}
}

// TestNoMemoryOfWhatNeedsNoPass: a cluster may have a hundred thousand Pods that do not concern a controller of Pods.
func TestNoMemoryOfWhatNeedsNoPass(t *testing.T) {
	for name, concerns := range map[string]bool{"a Pod that the controller is about": true, "another Pod": false} {
		t.Run(name, func(t *testing.T) {
			l := New(Kind[*corev1.Pod, string, corev1.PodStatus]{Concerns: func(_, _ *corev1.Pod) bool { return concerns }},
				Runtime{Executor: &apply.Executor{Config: apply.Config{Scheme: clientgoscheme.Scheme, Now: time.Now}}}, observe.Reader{}, observe.Reader{})
			l.Begin()
			events, err := l.Events()
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
			events[0].Handler.Create(t.Context(), event.CreateEvent{Object: pod, IsInInitialList: true}, &added{})
			if got := l.inherited.has("a"); got != concerns {
				t.Errorf("the Pod is remembered: %t, want %t", got, concerns)
			}
		})
	}
}
