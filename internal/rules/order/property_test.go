package order

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func anyStrategy() *rapid.Generator[Strategy] {
	return rapid.Custom(func(t *rapid.T) Strategy {
		var s Strategy
		switch rapid.IntRange(0, 2).Draw(t, "priority") {
		case 1:
			s.Priority = &pub.UpdatePriorityStrategy{OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "group"}}}
		case 2:
			s.Priority = &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{
				{Weight: rapid.Int32Range(0, 100).Draw(t, "weight"), MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"group": "a"}}},
				{Weight: rapid.Int32Range(0, 100).Draw(t, "weight"), MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "group", Operator: metav1.LabelSelectorOpExists},
				}}},
			}}
		}
		for _, value := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "scatter") {
			s.Scatter = append(s.Scatter, pub.UpdateScatterTerm{Key: "group", Value: value})
		}
		return s
	})
}

func TestSortOfAnyPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := build.AnyPods(16).Draw(t, "pods")
		candidates := slices.DeleteFunc(slices.Clone(all), func(*corev1.Pod) bool { return rapid.IntRange(0, 3).Draw(t, "left out") == 0 })
		strategy := anyStrategy().Draw(t, "strategy")
		before, text := slices.Clone(candidates), describe(t, candidates)

		sorted, err := Sort(candidates, all, strategy)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, candidates) || text != describe(t, candidates) {
			t.Fatal("Sort has changed its input")
		}
		got, want := build.Names(sorted), build.Names(candidates)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("Pods that were put in and got out (-in +out):\n%s", diff)
		}
		waiting := func(p *corev1.Pod) bool { return pod.State(p) == pub.LifecycleStatePreparingUpdate }
		if at := slices.IndexFunc(sorted, func(p *corev1.Pod) bool { return !waiting(p) }); at >= 0 && slices.ContainsFunc(sorted[at:], waiting) {
			t.Fatalf("a Pod that waits for its hook comes after others: %v", build.Names(sorted))
		}
		slices.Reverse(candidates)
		again, err := Sort(candidates, all, strategy)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(build.Names(sorted), build.Names(again)); diff != "" {
			t.Fatalf("the order depends on that of the input (-first +second):\n%s", diff)
		}
	})
}

// TestByWorthIsAnOrder checks what sorting needs: two Pods compare alike from both sides, and three never go in a circle.
func TestByWorthIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := build.AnyPods(3).Draw(t, "pods")
		for _, a := range pods {
			for _, b := range pods {
				if ByWorth(a, b) != -ByWorth(b, a) {
					t.Fatalf("%s and %s compare %d and %d", a.Name, b.Name, ByWorth(a, b), ByWorth(b, a))
				}
				for _, c := range pods {
					if ByWorth(a, b) <= 0 && ByWorth(b, c) <= 0 && ByWorth(a, c) > 0 {
						t.Fatalf("%s, %s and %s go in a circle", a.Name, b.Name, c.Name)
					}
				}
			}
		}
	})
}

func describe(t interface{ Fatal(...any) }, pods []*corev1.Pod) string {
	text, err := json.Marshal(pods)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzSelector reads selectors that anybody may have written: they are an error, or there is an order of all Pods.
func FuzzSelector(f *testing.F) {
	f.Add(`{"matchLabels":{"group":"a"}}`, int32(100))
	f.Add(`{"matchExpressions":[{"key":"group","operator":"NotIn","values":["a"]}]}`, int32(-1))
	f.Add(`{"matchExpressions":[{"key":"","operator":"In"}]}`, int32(1))
	f.Add(`{"matchExpressions":[{"key":"group","operator":"Exists","values":["a"]}]}`, int32(1))
	f.Fuzz(func(t *testing.T, text string, weight int32) {
		var selector metav1.LabelSelector
		if json.Unmarshal([]byte(text), &selector) != nil {
			return
		}
		all := build.Pods(4, func(i int, p *build.PodBuilder) { p.Label("group", string(rune('a'+i))) })
		term := pub.UpdatePriorityWeightTerm{Weight: weight, MatchSelector: selector}
		sorted, err := Sort(all, all, Strategy{Priority: &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{term, term}}})
		if _, unreadable := metav1.LabelSelectorAsSelector(&selector); (err != nil) != (unreadable != nil) {
			t.Fatalf("the selector is %v, and the order is %v", unreadable, err)
		}
		if err == nil && len(sorted) != len(all) {
			t.Fatalf("%d of %d Pods have a place", len(sorted), len(all))
		}
	})
}
