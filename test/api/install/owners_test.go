package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestOwnersMayBlockTheirDeletion is what the rights on finalizers are for: an API server with the admission plugin
// OwnerReferencesPermissionEnforcement, which OpenShift has, lets an account make objects whose owner waits for them when it is deleted only
// if it may update the owner's finalizers. No request shows it, and other API servers do not ask.
func TestOwnersMayBlockTheirDeletion(t *testing.T) {
	s := &stage{scene.NewStage(t, cluster.Options{
		Bare: true, Args: []string{"--k8s-args", "kube-apiserver:--enable-admission-plugins=OwnerReferencesPermissionEnforcement"},
	})}
	for _, tc := range []struct {
		program cluster.Program
		account types.NamespacedName
		roles   []string
		// made is what the account makes in this test.
		made schema.GroupVersionKind
	}{
		{cluster.KruiseManager(), types.NamespacedName{Namespace: "kruise-system", Name: "kruise-manager"}, []string{"kruise-manager-role", "kruise-resourcedistribution-role"},
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"}},
		{cluster.RolloutManager(), types.NamespacedName{Namespace: "kruise-rollout", Name: "kruise-rollout"}, []string{"kruise-rollout-role"},
			schema.GroupVersionKind{Group: "rollouts.kruise.io", Version: "v1beta1", Kind: "BatchRelease"}},
	} {
		s.Must(s.InstallProgram(s.Ctx, tc.program))
		s.Must(s.ApplyFile(s.Ctx, filepath.Join(s.root(), "config", "resourcedistribution", "role.yaml")))
		path := filepath.Join(s.Dir, tc.account.Name)
		s.Must(s.AccountKubeconfig(s.Ctx, tc.account, path))
		config, err := clientcmd.BuildConfigFromFlags("", path)
		s.Must(err)
		as, err := client.New(config, client.Options{Scheme: s.Client.Scheme()})
		s.Must(err)
		owners := s.blocking(tc.roles)
		if len(owners) < 3 {
			t.Fatalf("%v have rights on the finalizers of %v", tc.roles, owners)
		}
		for _, owner := range owners {
			s.Eventually("what "+owner.Resource+" own is made", func() error { return s.try(as, tc.made, owner) })
		}
		s.withoutFinalizers(tc.roles)
		for _, owner := range owners {
			s.Eventually("what "+owner.Resource+" own is refused", func() error {
				if err := s.try(as, tc.made, owner); !apierrors.IsForbidden(err) {
					return fmt.Errorf("creating it ended with %v, want it forbidden", err) //nolint:errorlint // there may be no error
				}
				return nil
			})
		}
	}
}

// try has the API server judge an object whose owner waits for it.
func (s *stage) try(as client.Client, made schema.GroupVersionKind, owner schema.GroupVersionResource) error {
	kind, err := as.RESTMapper().KindFor(owner)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "tried", "namespace": "default", "ownerReferences": []any{map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "name": "owner", "uid": "1", "blockOwnerDeletion": true, "controller": true,
		}}},
	}}
	o.SetGroupVersionKind(made)
	if made.Kind == "ControllerRevision" {
		o.Object["revision"], o.Object["data"] = int64(1), map[string]any{}
	} else {
		o.Object["spec"] = map[string]any{
			"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
			"releasePlan": map[string]any{"batches": []any{map[string]any{"canaryReplicas": int64(1)}}},
		}
	}
	return as.Create(s.Ctx, o, client.DryRunAll)
}

// blocking returns the resources whose finalizers roles may update.
func (s *stage) blocking(roles []string) []schema.GroupVersionResource {
	s.Helper()
	var all []schema.GroupVersionResource
	for _, role := range roles {
		var r rbacv1.ClusterRole
		s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Name: role}, &r))
		for _, rule := range r.Rules {
			for _, resource := range rule.Resources {
				if name, found := strings.CutSuffix(resource, "/finalizers"); found && slices.Contains(rule.Verbs, "update") {
					all = append(all, schema.GroupVersionResource{Group: rule.APIGroups[0], Resource: name})
				}
			}
		}
	}
	return all
}

// withoutFinalizers takes these rights away.
func (s *stage) withoutFinalizers(roles []string) {
	s.Helper()
	for _, role := range roles {
		var r rbacv1.ClusterRole
		s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Name: role}, &r))
		r.Rules = slices.DeleteFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.HasSuffix(resource, "/finalizers") })
		})
		s.Must(s.Client.Update(s.Ctx, &r))
	}
}
