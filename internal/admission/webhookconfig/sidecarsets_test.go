package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
)

func TestWithoutSidecarSetsNothingIsWritten(t *testing.T) {
	w := newWorld(t)
	w.lead()
	if w.writes != 0 {
		t.Errorf("there were %d writes", w.writes)
	}
	if sent := w.sent(podOf("web"), "default", nil); sent != nil {
		t.Errorf("an ordinary Pod is sent to %v", sent)
	}
}

func TestLifeOfASidecarSet(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	set := setOf("agent", "web")
	w.must(w.leader.Admit(ctx, nil, set))
	check := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.sent(podOf("web"), "default", nil)); diff != "" {
			t.Errorf("%s, a Pod that it selects is sent to (-want +got):\n%s", when, diff)
		}
		if sent := w.sent(podOf("db"), "default", nil); sent != nil {
			t.Errorf("%s, a Pod that it does not select is sent to %v", when, sent)
		}
		if sent := w.sent(podOf("web"), "kube-system", nil); sent != nil {
			t.Errorf("%s, a Pod of the system is sent to %v", when, sent)
		}
	}
	check("before it is stored", "mpod.kb.io")
	if again := w.lead().RequeueAfter; again < time.Minute {
		t.Errorf("the leader looks again after %s, want it to wait for the request to end", again)
	}
	check("when the leader has looked before it is stored", "mpod.kb.io")
	w.must(w.client.Create(ctx, set.DeepCopy()))
	w.now = w.now.Add(w.lead().RequeueAfter)
	w.lead()
	check("when it is stored", "mpod.kb.io")
	if noted, left := w.configuration().Annotations[keys.PodScopePending]; left {
		t.Errorf("it is still pending: %s", noted)
	}
	writes := w.writes
	w.lead()
	if w.writes != writes {
		t.Error("the leader writes although nothing has changed")
	}
	image := set.DeepCopy()
	image.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "agent:2"}}}
	w.must(w.leader.Admit(ctx, set, image))
	if w.writes != writes {
		t.Error("another image is a reason to write")
	}
	w.must(w.client.Delete(ctx, set))
	w.lead()
	check("when it is gone")
	w.isAsInstalled()
}

func TestARequestThatCameToNothingIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.must(w.leader.Admit(context.Background(), nil, setOf("agent", "web")))
	w.now = w.now.Add(w.lead().RequeueAfter)
	w.lead()
	w.isAsInstalled()
	if left := w.configuration().Annotations; len(left) != 0 {
		t.Errorf("annotations %v are left", left)
	}
}

// TestAnUpdateThatCantBeStoredChangesNothing has somebody else than an API server tell of updates: the server itself would store none of
// them.
func TestAnUpdateThatCantBeStoredChangesNothing(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	stored := setOf("agent", "web")
	stored.Generation = 2
	w.must(w.client.Create(ctx, stored.DeepCopy()))
	w.lead()
	writes := w.writes
	for name, change := range map[string]func(*v1beta1.SidecarSet){
		"of a SidecarSet that is not there":   func(s *v1beta1.SidecarSet) { s.Name = "other" },
		"of another object of its name":       func(s *v1beta1.SidecarSet) { s.UID = "guessed" },
		"of a spec that is no longer stored":  func(s *v1beta1.SidecarSet) { s.Generation-- },
		"of a spec that has not been written": func(s *v1beta1.SidecarSet) { s.Generation++ },
	} {
		before := stored.DeepCopy()
		change(before)
		after := before.DeepCopy()
		after.Spec.Selector = setOf("", "everything").Spec.Selector
		w.must(w.leader.Admit(ctx, before, after))
		if sent := w.sent(podOf("everything"), "default", nil); sent != nil || w.writes != writes {
			t.Fatalf("after an update %s Pods are sent to %v", name, sent)
		}
	}
	w.must(w.leader.Admit(ctx, stored, setOf("agent", "everything")))
	if sent := w.sent(podOf("everything"), "default", nil); len(sent) != 1 {
		t.Errorf("after a true update its Pods are sent to %v", sent)
	}
}

// TestSidecarSetsThatAreNeverStoredAreBounded: requests for more of them than users write at a time are refused, until the others are
// stored or have come to nothing, and the annotation stays far below what the API server takes.
func TestSidecarSetsThatAreNeverStoredAreBounded(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	admit := func(n int, change ...func(*v1beta1.SidecarSet)) error {
		set := setOf(fmt.Sprint("agent-", n), fmt.Sprint("app-", n))
		for _, f := range change {
			f(set)
		}
		return w.leader.Admit(ctx, nil, set)
	}
	for n := range maxPending {
		w.must(admit(n))
	}
	if err := admit(maxPending); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("one more is answered with %v", err)
	}
	w.must(w.client.Create(ctx, setOf("agent-0", "app-0")))
	w.must(admit(maxPending)) // one that is stored does not count
	w.now = w.now.Add(requestTimeout)
	w.must(admit(maxPending + 1))
	immense := func(set *v1beta1.SidecarSet) {
		for n := range 1000 {
			set.Spec.Selector.MatchLabels[fmt.Sprint("key-", n)] = strings.Repeat("x", 60)
		}
	}
	if err := admit(maxPending+2, immense); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("one with immense selectors is answered with %v", err)
	}
	if text := w.configuration().Annotations[keys.PodScopePending]; len(text) > maxPendingSize {
		t.Errorf("the annotation has %d bytes", len(text))
	}
}

func TestUnpausingWidens(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	paused := setOf("agent", "web")
	paused.Spec.InjectionStrategy.Paused = true
	w.must(w.leader.Admit(ctx, nil, paused))
	w.isAsInstalled()
	w.must(w.client.Create(ctx, paused.DeepCopy()))
	w.must(w.leader.Admit(ctx, paused, setOf("agent", "web")))
	if sent := w.sent(podOf("web"), "default", nil); len(sent) != 1 {
		t.Errorf("a Pod that it selects is sent to %v", sent)
	}
}

func TestLabelsOfNamespacesAreLeftToASelector(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	set := setOf("agent", "web")
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	w.must(w.leader.Admit(ctx, nil, set))
	if sent := w.sent(podOf("web"), "shop", nil); sent != nil {
		t.Errorf("a Pod of another team is sent to %v", sent)
	}
	if sent := w.sent(podOf("web"), "shop", map[string]string{"team": "x"}); len(sent) != 1 {
		t.Errorf("a Pod of the team is sent to %v, want one webhook", sent)
	}
	if sent := w.sent(podOf("web"), "kube-system", map[string]string{"team": "x"}); sent != nil {
		t.Errorf("a Pod of the system is sent to %v", sent)
	}
}

// TestTheWebhookOfTheOriginalIsNarrowed: it asks for all Pods, and stays until what takes its place is there.
func TestTheWebhookOfTheOriginalIsNarrowed(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	live := w.configuration()
	live.Webhooks = slices.Insert(live.Webhooks, 0, *live.Webhooks[slices.IndexFunc(live.Webhooks, isLaunchOrder)].DeepCopy())
	live.Webhooks[0].Name, live.Webhooks[0].MatchConditions = "mpod.kb.io", nil
	w.must(w.client.Update(ctx, live))
	w.must(w.client.Create(ctx, setOf("agent", "web")))
	w.lead()
	if sent := w.sent(podOf("web"), "default", nil); !slices.Equal(sent, []string{"mpod.kb.io"}) {
		t.Errorf("a Pod that a SidecarSet selects is sent to %v", sent)
	}
	if sent := w.sent(podOf("db"), "default", nil); sent != nil {
		t.Errorf("a Pod that no SidecarSet selects is sent to %v", sent)
	}
}

func TestWhatUsersSetGoesForTheCopiesToo(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	w.must(w.client.Create(ctx, setOf("agent", "web")))
	w.lead()
	live := w.configuration()
	tuned := &live.Webhooks[slices.IndexFunc(live.Webhooks, isLaunchOrder)]
	tuned.TimeoutSeconds = new(int32(3))
	tuned.ReinvocationPolicy = new(admissionv1.IfNeededReinvocationPolicy)
	tuned.NamespaceSelector.MatchExpressions = append(tuned.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"infra"},
	})
	want := tuned.DeepCopy()
	w.must(w.client.Update(ctx, live))
	w.lead()
	live = w.configuration()
	got := live.Webhooks[len(live.Webhooks)-1]
	if got.Name != "mpod.kb.io" {
		t.Fatalf("the last webhook is %s", got.Name)
	}
	got.Name, got.MatchConditions = want.Name, want.MatchConditions
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("(-tuned +copy):\n%s", diff)
	}
}

func TestAnAnnotationThatCantBeReadIsRemoved(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	live := w.configuration()
	live.Annotations = map[string]string{keys.PodScopePending: "{", "mine": "x"}
	w.must(w.client.Update(ctx, live))
	w.lead()
	if diff := cmp.Diff(map[string]string{"mine": "x"}, w.configuration().Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPendingSidecarSetsAreJSON(t *testing.T) {
	set := setOf("agent", "web")
	text, err := formatPending([]pending{newPending(setOf("agent", "db"), set, time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC))})
	want := `[{"name":"agent","uid":"agent","generation":1,"at":"2026-01-01T00:00:00Z","selector":{"matchLabels":{"app":"web"}}}]`
	if diff := cmp.Diff(want, text); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if back, err := parsePending(text); err != nil || len(back) != 1 || !json.Valid([]byte(text)) {
		t.Errorf("read as %v: %v", back, err)
	}
}

// TestPodsThatAskForALaunchOrderAreSent holds the condition that is shipped against the rule by which the order is kept.
func TestPodsThatAskForALaunchOrderAreSent(t *testing.T) {
	container := func(env ...corev1.EnvVar) corev1.Container { return corev1.Container{Name: "c", Env: env} }
	priority := corev1.EnvVar{Name: keys.ContainerPriorityEnv, Value: "1"}
	ordered := map[string]string{keys.ContainerLaunchPriority: keys.ContainerLaunchOrdered}
	cases := map[string]struct {
		annotations map[string]string
		containers  []corev1.Container
		want        bool
	}{
		"an ordinary Pod":        {nil, []corev1.Container{container(), container(corev1.EnvVar{Name: "X"})}, false},
		"with other annotations": {map[string]string{"a": "b"}, []corev1.Container{container(), container()}, false},
		"ordered":                {ordered, []corev1.Container{container(), container()}, true},
		"a priority":             {nil, []corev1.Container{container(), container(corev1.EnvVar{Name: "X"}, priority)}, true},
		"a priority that is no number": {nil,
			[]corev1.Container{container(), container(corev1.EnvVar{Name: priority.Name, Value: "x"})}, true},
		"a barrier of a Pod before": {nil, []corev1.Container{container(corev1.EnvVar{Name: keys.ContainerBarrierEnv})}, true},
		"what somebody who is no node calls a mirror": {map[string]string{corev1.MirrorPodAnnotationKey: "x",
			keys.ContainerLaunchPriority: "Ordered"},
			[]corev1.Container{container(), container()}, true},
		"without containers, in a hurry": {nil, nil, false},
	}
	w := newWorld(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(tc.annotations)},
				Spec: corev1.PodSpec{Containers: tc.containers}}
			if sent := w.sent(p, "default", nil); (len(sent) > 0) != tc.want {
				t.Errorf("sent to %v, want it sent: %t", sent, tc.want)
			}
			if priorities, err := launch.Priorities(p); (priorities != nil || err != nil) && !tc.want {
				t.Errorf("the Pod asks for %v, %v", priorities, err)
			}
		})
	}
	w.by = &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}}
	for annotation, want := range map[string]bool{corev1.MirrorPodAnnotationKey: false, "other": true} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: "x",
			keys.ContainerLaunchPriority: "Ordered"}}}
		if sent := w.sent(p, "default", nil); (len(sent) > 0) != want {
			t.Errorf("a node's Pod with the annotation %s is sent to %v, want it sent: %t", annotation, sent, want)
		}
	}
}
