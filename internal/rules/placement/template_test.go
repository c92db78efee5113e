package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/placement"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func TestTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ all, subset, want string }{
		"nothing of its own": {
			"{spec: {containers: [{name: app, image: a}]}}", "{name: a}", "{spec: {containers: [{name: app, image: a}]}}",
		},
		"its nodes": {
			"{spec: {containers: [{name: app}]}}",
			"{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z]}]}}",
			`{spec: {containers: [{name: app}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
			[{matchExpressions: [{key: zone, operator: In, values: [z]}]}]}}}}}`,
		},
		"its nodes among others, in each term": {
			`{spec: {containers: [{name: app}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
			[{matchExpressions: [{key: arch, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}}}`,
			`{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: Exists}], matchFields: [{key: metadata.name, operator: NotIn, values: [m]}]}}`,
			`{spec: {containers: [{name: app}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
			{matchExpressions: [{key: arch, operator: Exists}, {key: zone, operator: Exists}], matchFields: [{key: metadata.name, operator: NotIn, values: [m]}]},
			{matchExpressions: [{key: zone, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [n]}, {key: metadata.name, operator: NotIn, values: [m]}]}]}}}}}`,
		},
		"tolerations and a patch": {
			"{metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: a, env: [{name: A, value: one}]}], tolerations: [{key: t}]}}",
			"{name: a, tolerations: [{key: spot}], patch: {metadata: {labels: {tier: spot}}, spec: {containers: [{name: app, env: [{name: B, value: two}]}]}}}",
			`{metadata: {labels: {app: x, tier: spot}}, spec: {containers: [{name: app, image: a, env: [{name: B, value: two}, {name: A, value: one}]}],
			tolerations: [{key: t}, {key: spot}]}}`,
		},
		"a patch wins": {
			"{spec: {containers: [{name: app}]}}", "{name: a, tolerations: [{key: spot}], patch: {spec: {tolerations: [{key: other}], containers: [{name: side, image: s}]}}}",
			"{spec: {containers: [{name: side, image: s}, {name: app}], tolerations: [{key: other}]}}",
		},
		"a patch of nothing": {"{spec: {containers: [{name: app}]}}", "{name: a, patch: null}", "{spec: {containers: [{name: app}]}}"},
	} {
		t.Run(name, func(t *testing.T) {
			all, subset, want := read[corev1.PodTemplateSpec](t, tc.all), read[v1beta1.Subset](t, tc.subset), read[corev1.PodTemplateSpec](t, tc.want)
			got, err := placement.Template(all, subset)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(read[corev1.PodTemplateSpec](t, tc.all), all); diff != "" {
				t.Errorf("the template of all subsets has changed (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := placement.Template(&corev1.PodTemplateSpec{}, read[v1beta1.Subset](t, "{name: a, patch: [1]}")); err == nil {
		t.Error("a list is taken for a patch")
	}
}
