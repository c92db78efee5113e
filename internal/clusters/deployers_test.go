package clusters

import (
	"context"
	"fmt"
	"os"
	"slices"
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

// inClusters is a UnitedDeployment with so many subsets, one after the other in clusters c0, c1, ... of so many.
func inClusters(subsets, clusters int) *unstructured.Unstructured {
	var all []any
	for i := range subsets {
		all = append(all, map[string]any{
			"name": fmt.Sprintf("s%d", i), "targetCluster": map[string]any{"name": fmt.Sprintf("c%d", i%clusters)},
		})
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": map[string]any{"subsets": all}}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "UnitedDeployment"})
	o.SetNamespace("shop")
	o.SetName("web")
	return o
}

// TestWhoMayDeploy: the policy of config/multicluster asks the authorizer once for each cluster, if need be, and CEL lets it ask twice in an expression.
func TestWhoMayDeploy(t *testing.T) {
	file, err := os.Open("../../config/multicluster/deployers.yaml")
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
	all := func(authorizer.Attributes) bool { return true }
	inDefault := func(a authorizer.Attributes) bool { return a.GetNamespace() == "default" }
	named := func(names ...string) func(authorizer.Attributes) bool {
		return func(a authorizer.Attributes) bool {
			return a.GetNamespace() == "default" && slices.Contains(names, a.GetName())
		}
	}
	var twenty []string
	for i := range 20 {
		twenty = append(twenty, fmt.Sprintf("c%d", i))
	}
	for name, tc := range map[string]struct {
		may           func(authorizer.Attributes) bool
		before, after *unstructured.Unstructured
		refused       string
	}{
		"an administrator, in three clusters":                 {may: all, after: inClusters(3, 3)},
		"an administrator, 200 subsets in 200 clusters":       {may: all, after: inClusters(200, 200)},
		"all clusters of the namespace, 200 of them":          {may: inDefault, after: inClusters(200, 200)},
		"three clusters by name":                              {may: named("c0", "c1", "c2"), after: inClusters(3, 3)},
		"two of three clusters by name":                       {may: named("c0", "c2"), after: inClusters(3, 3), refused: "may not deploy to all of these clusters: default/c0, default/c1, default/c2;"},
		"three clusters by name, with 200 subsets":            {may: named("c0", "c1", "c2"), after: inClusters(200, 3)},
		"twenty clusters by name":                             {may: named(twenty...), after: inClusters(20, 20)},
		"twenty clusters by name, but for the last":           {may: named(twenty[:19]...), after: inClusters(20, 20), refused: "default/c19"},
		"more by name than can be asked for":                  {may: named(append(twenty, "c20")...), after: inClusters(21, 21), refused: "are 21 clusters that are new at once, and the right to each of them by its name can be asked for of 20"},
		"more by name, of which some were there before":       {may: named(append(twenty, "c20")...), before: inClusters(1, 1), after: inClusters(21, 21)},
		"no right, and nothing new":                           {may: named(), before: inClusters(3, 3), after: inClusters(2, 3)},
		"no right, and a new subset in a cluster that it has": {may: named(), before: inClusters(3, 3), after: inClusters(4, 3), refused: "default/c0"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			by := dispatch.By{Info: &user.DefaultInfo{Name: "author"}, Authorizer: authorizer.AuthorizerFunc(
				func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					asked++
					if a.GetVerb() == "deploy" && a.GetAPIGroup() == "multicluster.kruise.io" && a.GetResource() == "clusters" && tc.may(a) {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				})}
			resource := schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "uniteddeployments"}
			got := policy.Write(resource, tc.before, tc.after, by)
			if (got == "") != (tc.refused == "") || !strings.Contains(got, tc.refused) {
				t.Errorf("refused with %q, want %q", got, tc.refused)
			}
			if asked > 22 {
				t.Errorf("the authorizer was asked %d times", asked)
			}
		})
	}
}
