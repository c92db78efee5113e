package resourcedistribution

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAuthors: who may not read a Secret can't have it copied to where he may, and who may not write all Secrets can't have them overwritten.
func TestAuthors(t *testing.T) {
	e := newEnv(t)
	user := "author-of-" + e.Namespace
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = user
	author, err := client.New(config, client.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	grant := func(name, group, resource string, verbs ...string) {
		meta := metav1.ObjectMeta{Name: user + "-" + name}
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		}
		for _, o := range []client.Object{role, binding} {
			e.Must(e.Client.Create(e.Ctx, o))
			e.CleanUp(o)
		}
	}
	create := func(spec string) error {
		o := e.Manifest(fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: ResourceDistribution, metadata: {name: %s}, spec: {targets: {}, %s}}`, e.Namespace, spec))
		o.SetNamespace("")
		return author.Create(e.Ctx, o, client.DryRunAll)
	}
	isRefused := func(spec, why string) {
		e.Eventually(spec+" is refused", func() error {
			if err := create(spec); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), why) {
				return fmt.Errorf("the answer is %v, want %q", err, why) //nolint:errorlint // there may be none
			}
			return nil
		})
	}
	grant("distributions", "apps.kruise.io", "resourcedistributions", "*")
	from := `resourceFrom: {kind: Secret, namespace: kruise-system, name: kruise-webhook-certs}`
	isRefused(from, "may not get secrets kruise-webhook-certs in namespace kruise-system")
	isRefused(`conflictPolicy: Overwrite, `+configMap("one"), "may not update configmaps in all namespaces")
	e.Eventually("what copies only itself is taken", func() error { return create(configMap("one")) })
	const policy = `resource: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: closed}, spec: {podSelector: {}}}`
	for _, verb := range []string{"create", "update", "delete"} {
		isRefused(policy, "may not "+verb+" networkpolicies in all namespaces")
		grant(verb+"-policies", "networking.k8s.io", "networkpolicies", verb)
	}
	e.Eventually("who may write all may have them written", func() error { return create(policy) })
	grant("secrets", "", "secrets", "get")
	e.Eventually("who may read it may have it copied", func() error { return create(from) })
	grant("configmaps", "", "configmaps", "update")
	e.Eventually("who may update all may have them overwritten", func() error { return create(`conflictPolicy: Overwrite, ` + configMap("one")) })
}
