package disruption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

func TestChoose(t *testing.T) {
	named := func(name, spec string) *v1beta1.PodUnavailableBudget {
		b := budgetOf(t, spec)
		b.Name = name
		return b
	}
	const (
		web    = "selector: {matchLabels: {app: web}}"
		target = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}"
		older  = "targetRef: {apiVersion: apps/v1beta2, kind: Deployment, name: web}"
	)
	deployment := []Reference{
		{schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, "web-1"}, {schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web"},
	}
	cases := map[string]struct {
		budgets []*v1beta1.PodUnavailableBudget
		owners  []Reference
		want    string
	}{
		"none":                                 {},
		"the first by name":                    {budgets: []*v1beta1.PodUnavailableBudget{named("a", web), named("b", web)}, want: "a"},
		"one for the workload goes before":     {budgets: []*v1beta1.PodUnavailableBudget{named("a", web), named("b", target)}, owners: deployment, want: "b"},
		"the version of the workload is alike": {budgets: []*v1beta1.PodUnavailableBudget{named("a", older)}, owners: deployment, want: "a"},
		"a workload of another kind":           {budgets: []*v1beta1.PodUnavailableBudget{named("a", "targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}")}, owners: deployment},
		"a Pod without a workload":             {budgets: []*v1beta1.PodUnavailableBudget{named("a", target)}},
		"other labels":                         {budgets: []*v1beta1.PodUnavailableBudget{named("a", "selector: {matchLabels: {app: shop}}")}},
		"a selector of everything is none":     {budgets: []*v1beta1.PodUnavailableBudget{named("a", "selector: {}"), named("b", "{}")}},
		"what can't be read selects nothing":   {budgets: []*v1beta1.PodUnavailableBudget{named("a", "selector: {matchExpressions: [{key: app, operator: Like, values: [w]}]}"), named("b", "targetRef: {apiVersion: a/b/c, kind: Deployment, name: web}")}, owners: deployment},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if b := Choose(tc.budgets, Candidate{Labels: map[string]string{"app": "web"}, Owners: tc.owners}); b != nil {
				got = b.Name
			}
			if got != tc.want {
				t.Errorf("chose %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLink(t *testing.T) {
	old := map[string]string{"note": "kept", keys.RelatedBudgetOld: "gone"}
	want := map[string]string{"note": "kept", keys.RelatedBudget: "b", keys.RelatedBudgetOld: "b"}
	if diff := cmp.Diff(want, Link(old, "b")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "kept"}, Link(old, "")); diff != "" || len(old) != 2 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
