package clusters

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

const spread = `
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template: {deploymentTemplate: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}}}}
  topology: {clusterRegistry: {namespaces: [default, fleet]}, subsets: SUBSETS}
`

// TestWhoMayDeployToACluster: the right to write UnitedDeployments is not the right to have workloads in every cluster. It holds without a
// manager.
func TestWhoMayDeployToACluster(t *testing.T) {
	f := newFleet(t)
	f.Must(f.hub.Install(f.Ctx))
	root, err := cluster.Root()
	f.Must(err)
	f.Must(f.hub.ApplyFile(f.Ctx, filepath.Join(root, "config", "multicluster", "deployers.yaml")))
	f.grant("author", "writes", rbacv1.PolicyRule{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"uniteddeployments"}, Verbs: []string{"*"}})
	own := []string{"own"}
	for i := range 30 {
		own = append(own, fmt.Sprint("own-", i))
	}
	f.grant("author", "deploys", rbacv1.PolicyRule{
		APIGroups: []string{"multicluster.kruise.io"}, Resources: []string{"clusters"}, ResourceNames: own, Verbs: []string{"deploy"},
	})
	config := rest.CopyConfig(f.hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "author"}
	author, err := client.New(config, client.Options{Scheme: f.hub.Client.Scheme()})
	f.Must(err)

	const local, mine, foreign = "{name: local}", "{name: own, targetCluster: {name: own}}", "{name: foreign, targetCluster: {name: foreign}}"
	const otherNamespace = "{name: other, targetCluster: {namespace: fleet, name: own}}"
	object := func(subsets ...string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		f.Must(yaml.UnmarshalStrict([]byte(strings.Replace(spread, "SUBSETS", "["+strings.Join(subsets, ", ")+"]", 1)), &o.Object))
		return o
	}
	try := func(c client.Client, subsets ...string) error {
		return c.Create(f.Ctx, object(subsets...), client.DryRunAll)
	}
	many := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("{name: s%[1]d, targetCluster: {name: own-%[1]d}}", i))
		}
		return out
	}
	// The policy takes a moment until it is enforced.
	f.Eventually("a subset in a cluster of others is refused", func() error {
		return wants(try(author, foreign), "author may not deploy to all of these clusters: default/foreign")
	})
	for name, tc := range map[string]struct {
		err  error
		says string
	}{
		"no other cluster":                                        {try(author, local), ""},
		"the author's cluster":                                    {try(author, local, mine), ""},
		"one of that name in another namespace":                   {try(author, mine, otherNamespace), "fleet/own"},
		"an administrator, in the cluster of others":              {try(f.hub.Client, foreign), ""},
		"the cluster of others beside the author's":               {try(author, mine, foreign), "default/foreign"},
		"the cluster of others with its namespace":                {try(author, "{name: a, targetCluster: {namespace: default, name: foreign}}"), "default/foreign"},
		"as many clusters of the author's as are taken at a time": {try(author, many(20)...), ""},
		"one more": {try(author, many(21)...), "these are 21 clusters that are new at once"},
		"the last of many in the cluster of others":   {try(author, append(many(19), foreign)...), "default/foreign"},
		"an administrator, in thirty clusters":        {try(f.hub.Client, append(many(29), foreign)...), ""},
		"the cluster of others with no namespace set": {try(author, `{name: a, targetCluster: {namespace: "", name: foreign}}`), "default/foreign"},
	} {
		if err := wants(tc.err, tc.says); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	stored := object(foreign)
	f.Must(f.hub.Client.Create(f.Ctx, stored))
	f.Cleanup(func() { f.Must(f.hub.Client.Delete(f.Afterwards(), stored)) })
	change := func(subsets ...string) error {
		now := object(subsets...)
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(now.GroupVersionKind())
		f.Must(f.hub.Client.Get(f.Ctx, client.ObjectKeyFromObject(now), stored))
		now.SetResourceVersion(stored.GetResourceVersion())
		now.SetLabels(map[string]string{"changed": "true"})
		return author.Update(f.Ctx, now, client.DryRunAll)
	}
	if err := change(foreign, local); err != nil {
		t.Errorf("a change that puts nothing into the cluster of others: %v", err)
	}
	if err := wants(change(foreign, "{name: more, targetCluster: {name: foreign}}"), "default/foreign"); err != nil {
		t.Errorf("one more subset in the cluster of others: %v", err)
	}
}

// grant gives a user a right in namespace default.
func (f *fleet) grant(user, name string, rule rbacv1.PolicyRule) {
	f.Helper()
	at := metav1.ObjectMeta{Namespace: "default", Name: name}
	f.Must(f.hub.Client.Create(f.Ctx, &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{rule}}))
	f.Must(f.hub.Client.Create(f.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
}

// wants returns an error unless err has a text in it, or is nil where the text is empty.
func wants(err error, says string) error {
	if says == "" && err == nil || says != "" && err != nil && strings.Contains(err.Error(), says) {
		return nil
	}
	return fmt.Errorf("got %s, want an error with %q", fmt.Sprint(err), says)
}
