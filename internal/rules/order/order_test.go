package order

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// pods returns the Pods in a fixed order that is not the one wanted.
func pods(builders ...*build.PodBuilder) []*corev1.Pod {
	var out []*corev1.Pod
	for _, b := range builders {
		out = append(out, b.Obj())
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(b.Name, a.Name) })
	return out
}

// sorted returns the names of the candidates, which are all Pods there are, in the order of their update.
func sorted(t *testing.T, candidates []*corev1.Pod, s Strategy) []string {
	t.Helper()
	got, err := Sort(candidates, candidates, s)
	if err != nil {
		t.Fatal(err)
	}
	return build.Names(got)
}

func TestByWorth(t *testing.T) {
	start := build.Start()
	onNode := func(name string) *build.PodBuilder { return build.Pod(name).Node("n1") }
	cases := map[string]struct {
		first, second *build.PodBuilder
	}{
		"no node before a node, whatever else":        {build.Pod("z").Ready(start), onNode("a")},
		"pending before unknown":                      {onNode("z"), onNode("a").Phase(corev1.PodUnknown)},
		"unknown before running":                      {onNode("z").Phase(corev1.PodUnknown), onNode("a").NotReady()},
		"pending before running":                      {onNode("z"), onNode("a").NotReady()},
		"not ready before ready":                      {onNode("z").NotReady(), onNode("a").Ready(start)},
		"ready for a shorter time first":              {onNode("z").Ready(build.After(5)), onNode("a").Ready(start)},
		"no time counts as the shortest":              {onNode("z").Ready(metav1.Time{}.Time), onNode("a").Ready(build.After(5))},
		"more restarts first":                         {onNode("z").Ready(start).Restarts(0, 2), onNode("a").Ready(start).Restarts(1, 1)},
		"the time of readiness before the restarts":   {onNode("z").Ready(build.After(5)), onNode("a").Ready(start).Restarts(9)},
		"the younger first":                           {onNode("z").Ready(start).Created(build.After(5)), onNode("a").Ready(start)},
		"the restarts before the age":                 {onNode("z").Ready(start).Restarts(1), onNode("a").Ready(start).Created(build.After(5))},
		"at last the name":                            {onNode("a").Ready(start), onNode("z").Ready(start)},
		"held out of service by an update: not ready": {onNode("z").Ready(start).Condition(pub.InPlaceUpdateReady, corev1.ConditionFalse, start), onNode("a").Ready(start)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first, second := tc.first.Obj(), tc.second.Obj()
			if got := ByWorth(first, second); got >= 0 {
				t.Errorf("ByWorth is %d, want the first one first", got)
			}
			if got := ByWorth(second, first); got <= 0 {
				t.Errorf("ByWorth the other way round is %d, want the first one first", got)
			}
			want := []string{first.Name, second.Name}
			if diff := cmp.Diff(want, sorted(t, []*corev1.Pod{second, first}, Strategy{})); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPriority(t *testing.T) {
	start := build.Start()
	labelled := func(name string, pairs ...string) *build.PodBuilder {
		b := build.Pod(name).Node("n1").Ready(start)
		for i := 0; i < len(pairs); i += 2 {
			b.Label(pairs[i], pairs[i+1])
		}
		return b
	}
	weight := func(weight int32, key, value string) pub.UpdatePriorityWeightTerm {
		return pub.UpdatePriorityWeightTerm{Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	}
	byKeys := func(keys ...string) *pub.UpdatePriorityStrategy {
		s := &pub.UpdatePriorityStrategy{}
		for _, key := range keys {
			s.OrderPriority = append(s.OrderPriority, pub.UpdatePriorityOrderTerm{OrderedKey: key})
		}
		return s
	}
	cases := map[string]struct {
		pods     []*corev1.Pod
		priority *pub.UpdatePriorityStrategy
		want     []string
	}{
		"the larger weight first": {
			pods(labelled("a"), labelled("b", "key", "bar"), labelled("c", "key", "foo")),
			&pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{weight(30, "key", "bar"), weight(50, "key", "foo")}},
			[]string{"c", "b", "a"},
		},
		"weights add up": {
			pods(labelled("a", "key", "foo"), labelled("b", "key", "bar", "size", "big")),
			&pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{
				weight(50, "key", "foo"), weight(30, "key", "bar"), weight(30, "size", "big")}},
			[]string{"b", "a"},
		},
		"of one weight, those that serve least first": {
			pods(labelled("a", "key", "foo"), labelled("b", "key", "foo").NotReady(), labelled("c").NotReady()),
			&pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{weight(1, "key", "foo")}},
			[]string{"b", "a", "c"},
		},
		"an empty selector matches all": {
			pods(labelled("a"), labelled("b", "key", "foo")),
			&pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{{Weight: 100}, weight(1, "key", "foo")}},
			[]string{"b", "a"},
		},
		"the larger number at the end of a value first, no key before all": {
			pods(labelled("three", "key", "a-3"), labelled("ten", "key", "a-10"), labelled("one", "key", "a-1"), labelled("none")),
			byKeys("key"),
			[]string{"none", "ten", "three", "one"},
		},
		"the first key listed decides": {
			pods(labelled("a", "second", "9"), labelled("b", "first", "1", "second", "99"), labelled("c", "first", "2")),
			byKeys("first", "second"),
			[]string{"c", "b", "a"},
		},
		"a value without digits counts as 0": {
			pods(labelled("a", "key", "x"), labelled("b", "key", "1"), labelled("c", "key", "")),
			byKeys("key"),
			[]string{"b", "a", "c"},
		},
		"a number that is too large counts as the largest": {
			pods(labelled("a", "key", "1"), labelled("b", "key", strings.Repeat("9", 63))),
			byKeys("key"),
			[]string{"b", "a"},
		},
		"an empty strategy changes nothing": {pods(labelled("a"), labelled("b").NotReady()), &pub.UpdatePriorityStrategy{}, []string{"b", "a"}},
		"no strategy changes nothing":       {pods(labelled("a"), labelled("b").NotReady()), nil, []string{"b", "a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sorted(t, tc.pods, Strategy{Priority: tc.priority})); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableSelectorIsAnError(t *testing.T) {
	bad := pub.UpdatePriorityWeightTerm{Weight: 1, MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "key", Operator: "Near"},
	}}}
	good := pub.UpdatePriorityWeightTerm{Weight: 1}
	got, err := Sort(build.Pods(2), nil, Strategy{Priority: &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{good, bad}}})
	if err == nil || !strings.Contains(err.Error(), "matchSelector 1 of weightPriority") {
		t.Errorf("error is %v, want one that names the term", err)
	}
	if got != nil {
		t.Errorf("there is an order in spite of the error: %v", build.Names(got))
	}
}

func TestThoseThatWaitForTheirHookComeFirst(t *testing.T) {
	start := build.Start()
	candidates := pods(
		build.Pod("a").Node("n1").Ready(start),
		build.Pod("b").Node("n1").Ready(start).State(pub.LifecycleStatePreparingUpdate),
		build.Pod("c").NotReady(),
		build.Pod("d").Node("n1").Ready(build.After(1)).State(pub.LifecycleStatePreparingUpdate),
		build.Pod("e").Node("n1").Ready(start).Label("key", "9"),
	)
	got := sorted(t, candidates, Strategy{Priority: &pub.UpdatePriorityStrategy{OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "key"}}}})
	if diff := cmp.Diff([]string{"d", "b", "c", "a", "e"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestTrailingInteger(t *testing.T) {
	for text, want := range map[string]int64{
		"5": 5, "sts-10": 10, "": 0, "x": 0, "10x": 0, "a1b22": 22, "-3": 3, "007": 7, "١": 0, "9223372036854775808": 9223372036854775807,
	} {
		t.Run(fmt.Sprintf("of %q", text), func(t *testing.T) {
			if got := trailingInteger(text); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}
