package inject

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestMatch(t *testing.T) {
	sets := []*Candidate{
		NewCandidate(setOf(t, "all", `{containers: [{name: a}]}`)),
		NewCandidate(setOf(t, "base", `{selector: {matchLabels: {app: base}}, containers: [{name: a}]}`)),
		NewCandidate(setOf(t, "canary", `{selector: {matchLabels: {canary: "1"}}, containers: [{name: a}]}`)),
		NewCandidate(setOf(t, "empty", `{selector: {}, containers: [{name: a}]}`)),
		NewCandidate(setOf(t, "here", `{namespaceSelector: {matchLabels: {team: x}}, containers: [{name: a}]}`)),
		NewCandidate(setOf(t, "paused", `{injectionStrategy: {paused: true}, containers: [{name: a}]}`)),
	}
	sets[2].Set.Annotations = map[string]string{keys.SidecarSetCanary: "true", keys.SidecarSetBase: "base"}
	for name, tc := range map[string]struct {
		labels, namespace map[string]string
		want              []string
	}{
		"by labels":                 {map[string]string{"app": "web"}, nil, []string{"all"}},
		"by labels of a namespace":  {map[string]string{"app": "web"}, map[string]string{"team": "x"}, []string{"all", "here"}},
		"none":                      {map[string]string{"app": "other"}, map[string]string{"team": "x"}, nil},
		"a base":                    {map[string]string{"app": "base"}, nil, []string{"base"}},
		"the canary in its place":   {map[string]string{"app": "base", "canary": "1"}, nil, []string{"canary"}},
		"the canary without a base": {map[string]string{"app": "web", "canary": "1"}, nil, []string{"all", "canary"}},
	} {
		t.Run(name, func(t *testing.T) {
			matching, err := NewCandidates(sets...).Match(tc.labels, func() (map[string]string, error) { return tc.namespace, nil })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range matching {
				got = append(got, c.Set.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMatchFindsAll holds what is found by a Pod's labels against a look at every SidecarSet.
func TestMatchFindsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value := rapid.SampledFrom([]string{"app", "tier", "zone"}), rapid.SampledFrom([]string{"a", "b", "c"})
		var all []*Candidate
		for number := range rapid.IntRange(0, 12).Draw(t, "sets") {
			selector := &metav1.LabelSelector{}
			for range rapid.IntRange(1, 2).Draw(t, "requirements") {
				r := metav1.LabelSelectorRequirement{Key: key.Draw(t, "key"), Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
					metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
				}).Draw(t, "operator")}
				if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
					r.Values = rapid.SliceOfN(value, 1, 3).Draw(t, "values")
				}
				selector.MatchExpressions = append(selector.MatchExpressions, r)
			}
			all = append(all, NewCandidate(&v1beta1.SidecarSet{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%02d", number)}, Spec: v1beta1.SidecarSetSpec{SidecarSetBaseSpec: v1beta1.SidecarSetBaseSpec{Selector: selector}},
			}))
		}
		of := rapid.MapOf(key, value).Draw(t, "labels")
		var want []*Candidate
		for _, c := range all {
			if c.selection.MatchesLabels(of) {
				want = append(want, c)
			}
		}
		slices.Reverse(all) // however they come
		got, err := NewCandidates(all...).Match(of, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("found %d, want %d, error %v", len(got), len(want), err)
		}
	})
}
