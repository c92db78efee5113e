package scope_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// Few keys and values, so that selectors and labels meet often.
func keysToDraw() []string { return []string{"app", "tier", "example.com/a.b_c-d", "size"} }

func valuesToDraw() []string { return []string{"", "web", "db", "a.b_c-D", "true"} }

func namespacesToDraw() []string { return []string{"default", "shop", "in"} }

func drawSelector(t *rapid.T, keys, values []string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	for range rapid.IntRange(1, 3).Draw(t, "requirements") {
		r := metav1.LabelSelectorRequirement{
			Key: rapid.SampledFrom(keys).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}).Draw(t, "operator"),
		}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, "values")
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out
}

func drawSet(t *rapid.T) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{}
	set.Spec.Selector = drawSelector(t, keysToDraw(), valuesToDraw())
	set.Spec.InjectionStrategy.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
	switch rapid.IntRange(0, 2).Draw(t, "namespaces") {
	case 1:
		set.Spec.NamespaceSelector = drawSelector(t, []string{corev1.LabelMetadataName}, namespacesToDraw())
	case 2:
		set.Spec.NamespaceSelector = drawSelector(t, []string{corev1.LabelMetadataName, "team", "env"}, append(namespacesToDraw(), "a", "b"))
	}
	return set
}

// drawLabels returns labels of a Pod as a client may send them, some of which the API server will refuse later.
func drawLabels(t *rapid.T) map[string]string {
	key := rapid.OneOf(rapid.SampledFrom(keysToDraw()), rapid.SampledFrom([]string{`"`, `'`, `\`, "\n", "☸"}), rapid.String())
	value := rapid.OneOf(rapid.SampledFrom(valuesToDraw()), rapid.SampledFrom([]string{`"] || true || labels["`, `'`, `\"`, "\x00"}), rapid.String())
	return rapid.MapOfN(key, value, 0, 6).Draw(t, "labels")
}

// TestWhatIsSelectedIsSent holds the expressions, as the API server judges them, against the rule by which sidecars are injected: neither lets a Pod
// through that the other would not.
func TestWhatIsSelectedIsSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var candidates []*inject.Candidate
		var interests []scope.Interest
		for range rapid.IntRange(0, 5).Draw(t, "sets") {
			set := drawSet(t)
			candidates = append(candidates, inject.NewCandidate(set))
			if i, ok := scope.OfSidecarSet(set); ok {
				interests = append(interests, i)
			}
		}
		var hooks []dispatch.Webhook
		for _, e := range scope.Entries(interests) {
			hooks = append(hooks, dispatch.Read(hookOf(e)))
		}
		var coarser []dispatch.Webhook
		if len(interests) > 0 {
			limit := rapid.IntRange(0, 600).Draw(t, "limit")
			coarser = append(coarser, dispatch.Read(hookOf(scope.Entry{Expression: scope.Expression(interests, limit)})))
		}
		for range 3 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: drawLabels(t)}}
			namespace := rapid.SampledFrom(namespacesToDraw()).Draw(t, "namespace")
			of := map[string]string{corev1.LabelMetadataName: namespace}
			for _, key := range []string{"team", "env"} {
				if value := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, key); value != "" {
					of[key] = value
				}
			}
			matching, err := inject.NewCandidates(candidates...).Match(pod.Labels, func() (map[string]string, error) { return of, nil })
			if err != nil {
				t.Fatal(err)
			}
			selected := len(matching) > 0
			called := func(hook dispatch.Webhook) bool {
				called, err := hook.Calls(pod, namespace, of)
				if err != nil {
					t.Fatalf("the API server could not judge %q: %v", hook.GetMatchConditions()[0].Expression, err)
				}
				return called
			}
			if got := slices.ContainsFunc(hooks, called); got != selected {
				t.Fatalf("sent: %t, selected: %t", got, selected)
			}
			if selected && !slices.ContainsFunc(coarser, called) {
				t.Fatalf("a selected Pod is not sent by %q", coarser[0].GetMatchConditions()[0].Expression)
			}
		}
	})
}
