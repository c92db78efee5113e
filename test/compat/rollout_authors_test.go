package compat

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// TestWhoMayHaveRolloutsRunJobs: only who may create Jobs in the namespace.
func TestWhoMayHaveRolloutsRunJobs(t *testing.T) {
	file, err := os.Open("../../config/rollouts/policy_authors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it is only read
	shipped := &admissionv1.ValidatingAdmissionPolicy{}
	if err := yaml.NewYAMLOrJSONDecoder(file, 4096).Decode(shipped); err != nil {
		t.Fatal(err)
	}
	policy, err := dispatch.ReadPolicy(shipped)
	if err != nil {
		t.Fatal(err)
	}
	rollout := func(style string, checks ...any) *unstructured.Unstructured {
		steps := []any{map[string]any{"replicas": int64(1)}, map[string]any{"replicas": "100%", "analysis": map[string]any{"checks": checks}}}
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"strategy": map[string]any{style: map[string]any{"steps": steps}}}}}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "rollouts.kruise.io", Version: "v1beta1", Kind: "Rollout"})
		o.SetNamespace("shop")
		o.SetName("web")
		return o
	}
	finalized := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		o.SetFinalizers([]string{"rollouts.kruise.io/rollout"})
		return o
	}
	request := map[string]any{"name": "a", "http": map[string]any{"url": "http://web"}}
	job := map[string]any{"name": "b", "job": map[string]any{"template": map[string]any{}}}
	for name, tc := range map[string]struct {
		may           bool
		before, after *unstructured.Unstructured
		refused       bool
	}{
		"a Job, with the right":             {true, nil, rollout("canary", request, job), false},
		"a Job, without":                    {false, nil, rollout("canary", request, job), true},
		"a Job of blueGreen, without":       {false, nil, rollout("blueGreen", job), true},
		"a request":                         {false, nil, rollout("canary", request), false},
		"a Job is added":                    {false, rollout("canary", request), rollout("canary", request, job), true},
		"a change of one with a Job":        {false, rollout("canary", job), rollout("canary", job, request), true},
		"only metadata of one with a Job":   {false, rollout("canary", job), finalized(rollout("canary", job)), false},
		"the Job is taken out of a Rollout": {false, rollout("canary", job), rollout("canary", request), false},
	} {
		t.Run(name, func(t *testing.T) {
			by := dispatch.By{Info: &user.DefaultInfo{Name: "author"}, Authorizer: authorizer.AuthorizerFunc(
				func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					if tc.may && a.GetVerb() == "create" && a.GetAPIGroup() == "batch" && a.GetResource() == "jobs" && a.GetNamespace() == "shop" {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				})}
			resource := schema.GroupVersionResource{Group: "rollouts.kruise.io", Version: "v1beta1", Resource: "rollouts"}
			got := policy.Write(resource, tc.before, tc.after, by)
			if tc.refused != strings.Contains(got, "author may not create jobs in namespace shop") || !tc.refused && got != "" {
				t.Errorf("refused with %q", got)
			}
		})
	}
}
