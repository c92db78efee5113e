package scope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

const binding = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(labels,\n"

// selectors is what of a SidecarSet matters here, as JSON would say it.
type selectors struct{ pods, namespaces metav1.LabelSelector }

func (s selectors) interest(t *testing.T) scope.Interest {
	t.Helper()
	var namespaces *metav1.LabelSelector
	if len(s.namespaces.MatchLabels)+len(s.namespaces.MatchExpressions) > 0 {
		namespaces = &s.namespaces
	}
	i, ok := scope.OfSelectors(&s.pods, namespaces)
	if !ok {
		t.Fatalf("%+v can't be read", s)
	}
	return i
}

func labelled(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func required(all ...metav1.LabelSelectorRequirement) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: all}
}

func requirement(key string, o metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: o, Values: values}
}

func TestEntries(t *testing.T) {
	inNamespace := func(names ...string) metav1.LabelSelector {
		return required(requirement(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, names...))
	}
	cases := map[string]struct {
		of   []selectors
		want []scope.Entry
	}{
		"nothing is asked for without SidecarSets": {nil, nil},
		"a label": {
			[]selectors{{pods: labelled("app", "web")}},
			[]scope.Entry{{Expression: binding + `"app" in labels && labels["app"] == "web")`}},
		},
		"all values of one label are taken together": {
			[]selectors{{pods: labelled("app", "web")}, {pods: labelled("app", "db")}, {pods: labelled("app", "web")}},
			[]scope.Entry{{Expression: binding + `"app" in labels && labels["app"] in ["db","web"])`}},
		},
		"selectors that differ in one label are taken together": {
			[]selectors{
				{pods: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "front"}}},
				{pods: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db", "tier": "front"}}},
				{pods: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "back"}}},
				{pods: metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache", "tier": "back"}}},
			},
			[]scope.Entry{{Expression: binding + `"app" in labels && labels["app"] in ["cache","web"] && "tier" in labels && labels["tier"] == "back" ||` + "\n" +
				`"app" in labels && labels["app"] in ["db","web"] && "tier" in labels && labels["tier"] == "front")`}},
		},
		"named namespaces are part of the expression": {
			[]selectors{{labelled("app", "web"), labelled(corev1.LabelMetadataName, "shop")}, {labelled("app", "db"), inNamespace("b", "a")}},
			[]scope.Entry{{Expression: binding + `request.namespace == "shop" && "app" in labels && labels["app"] == "web" ||` + "\n" +
				`request.namespace in ["a","b"] && "app" in labels && labels["app"] == "db")`}},
		},
		"all operators": {
			[]selectors{{required(
				requirement("a", metav1.LabelSelectorOpIn, "1", "2"), requirement("b", metav1.LabelSelectorOpNotIn, "3"),
				requirement("c", metav1.LabelSelectorOpExists), requirement("d", metav1.LabelSelectorOpDoesNotExist),
			), required(requirement(corev1.LabelMetadataName, metav1.LabelSelectorOpNotIn, "x"), requirement(corev1.LabelMetadataName, metav1.LabelSelectorOpExists))}},
			[]scope.Entry{{Expression: binding + `!(request.namespace == "x") && "a" in labels && labels["a"] in ["1","2"] && ` +
				`!("b" in labels && labels["b"] == "3") && !("d" in labels) && "c" in labels)`}},
		},
		"labels of namespaces are a selector of an entry of their own": {
			[]selectors{{labelled("app", "web"), labelled("team", "x")}, {labelled("app", "web"), metav1.LabelSelector{}}, {labelled("app", "db"), labelled("team", "x")}},
			[]scope.Entry{
				{Expression: binding + `"app" in labels && labels["app"] == "web")`},
				{
					Name:       "20040b41",
					Namespaces: []metav1.LabelSelectorRequirement{requirement("team", metav1.LabelSelectorOpIn, "x")},
					Expression: binding + `"app" in labels && labels["app"] in ["db","web"])`,
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var interests []scope.Interest
			for _, s := range tc.of {
				interests = append(interests, s.interest(t))
			}
			if diff := cmp.Diff(tc.want, scope.Entries(interests)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSidecarSetsWithoutInterest(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.SidecarSet){
		"injection is paused":   func(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true },
		"it is being deleted":   func(s *v1beta1.SidecarSet) { s.DeletionTimestamp = &metav1.Time{} },
		"its selector is empty": func(s *v1beta1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} },
		"its selector of namespaces is broken": func(s *v1beta1.SidecarSet) {
			s.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"'": "'"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			web := labelled("app", "web")
			set := &v1beta1.SidecarSet{Spec: v1beta1.SidecarSetSpec{SidecarSetBaseSpec: v1beta1.SidecarSetBaseSpec{Selector: &web}}}
			if _, ok := scope.OfSidecarSet(set); !ok {
				t.Fatal("the SidecarSet has no interest to begin with")
			}
			change(set)
			if _, ok := scope.OfSidecarSet(set); ok {
				t.Error("it is asked about new Pods all the same")
			}
		})
	}
}

// TestManySidecarSetsMakeTheExpressionCoarser: with ever less room the expression says ever less, and never leaves a Pod out.
func TestManySidecarSetsMakeTheExpressionCoarser(t *testing.T) {
	var interests []scope.Interest
	for i := range 50 {
		s := selectors{pods: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("web-%d", i), "tier": fmt.Sprintf("%d", i)}}, namespaces: labelled(corev1.LabelMetadataName, "shop")}
		interests = append(interests, s.interest(t))
	}
	cases := map[string]struct {
		limit int
		want  string
	}{
		"by the labels that have to be there": {1000, binding + `request.namespace == "shop" && "app" in labels && "tier" in labels)`},
		"by namespace":                        {110, binding + `request.namespace == "shop")`},
		"everything":                          {100, "true"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scope.Expression(interests, tc.limit)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	full := scope.Expression(interests, 1<<20)
	if n := strings.Count(full, "||"); n != 49 {
		t.Errorf("with all the room there are %d alternatives, want 50", n+1)
	}
}

// TestTheAPIServerBearsTheLongestExpression: it is compiled and judged within the limits that the API server sets, of a Pod that makes it look at
// every alternative.
func TestTheAPIServerBearsTheLongestExpression(t *testing.T) {
	var interests []scope.Interest
	labels := map[string]string{}
	for i := range 110 {
		key := fmt.Sprintf("example.com/the-number-%d", i)
		s := selectors{pods: required(requirement(key, metav1.LabelSelectorOpIn, "a", "b"), requirement("other", metav1.LabelSelectorOpNotIn, "x"))}
		interests = append(interests, s.interest(t))
		labels[key] = "c"
	}
	entries := scope.Entries(interests)
	if size := len(entries[0].Expression); size < 12_000 {
		t.Fatalf("the expression is only %d bytes long", size)
	}
	hook := dispatch.Read(hookOf(entries[0]))
	for _, want := range []bool{false, true} {
		if want {
			labels["example.com/the-number-109"] = "b"
		}
		got, err := hook.Calls(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, "default", nil)
		if got != want || err != nil {
			t.Errorf("called: %t, %v, want %t", got, err, want)
		}
	}
}

func hookOf(e scope.Entry) *admissionv1.MutatingWebhook {
	fail := admissionv1.Fail
	return &admissionv1.MutatingWebhook{
		Name: "mpod.kb.io", FailurePolicy: &fail,
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: e.Namespaces},
		MatchConditions:   []admissionv1.MatchCondition{{Name: "selected", Expression: e.Expression}},
	}
}
