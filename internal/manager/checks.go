package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oldestServer is the first Kubernetes with the resize subresource of Pods.
const oldestServer = "1.32"

// crds are the kinds that must be installed.
func crds() []string {
	return []string{
		"advancedcronjobs.apps.kruise.io", "broadcastjobs.apps.kruise.io",
		"clonesets.apps.kruise.io", "containerrecreaterequests.apps.kruise.io", "daemonsets.apps.kruise.io",
		"ephemeraljobs.apps.kruise.io",
		"imagelistpulljobs.apps.kruise.io", "imagepulljobs.apps.kruise.io", "nodeimages.apps.kruise.io",
		"nodepodprobes.apps.kruise.io", "podprobemarkers.apps.kruise.io", "sidecarsets.apps.kruise.io", "statefulsets.apps.kruise.io",
		"podunavailablebudgets.policy.kruise.io",
	}
}

// need is a right that the manager cannot work without.
type need struct {
	group, resource, subresource string
	verbs                        []string
	// namespace is where the right is needed; empty for everywhere.
	namespace string
}

// pullSecretNeeds are the rights in the namespace that the daemons of nodes read Secrets of, without which image pull jobs can't be looked after.
func pullSecretNeeds(namespace string) []need {
	return []need{{group: "", resource: "secrets", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, namespace: namespace}}
}

// Needs are the rights that the manager asks for at its start. The ClusterRole that is shipped grants these and no more of them.
func Needs() []need {
	return []need{
		{group: "", resource: "pods", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "", resource: "pods", subresource: "status", verbs: []string{"patch"}},
		{group: "", resource: "pods", subresource: "resize", verbs: []string{"patch"}},
		{group: "", resource: "pods", subresource: "ephemeralcontainers", verbs: []string{"patch"}},
		{group: "", resource: "persistentvolumeclaims", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "", resource: "configmaps", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "", resource: "namespaces", verbs: []string{"get", "list", "watch"}},
		{group: "", resource: "nodes", verbs: []string{"get", "list", "watch"}},
		{group: "", resource: "events", verbs: []string{"create", "patch"}},
		{group: "", resource: "podtemplates", verbs: []string{"create"}},
		{group: "apps", resource: "controllerrevisions", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "advancedcronjobs", verbs: []string{"get", "list", "watch"}},
		{group: "apps.kruise.io", resource: "advancedcronjobs", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "advancedcronjobs", subresource: "finalizers", verbs: []string{"update"}},
		{group: "apps.kruise.io", resource: "broadcastjobs", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "broadcastjobs", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "broadcastjobs", subresource: "finalizers", verbs: []string{"update"}},
		{group: "apps.kruise.io", resource: "clonesets", verbs: []string{"get", "list", "watch", "patch"}},
		{group: "apps.kruise.io", resource: "clonesets", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "clonesets", subresource: "finalizers", verbs: []string{"update"}},
		{group: "apps.kruise.io", resource: "containerrecreaterequests", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "containerrecreaterequests", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "podprobemarkers", verbs: []string{"get", "list", "watch", "patch"}},
		{group: "apps.kruise.io", resource: "podprobemarkers", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "nodepodprobes", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "daemonsets", verbs: []string{"get", "list", "watch"}},
		{group: "apps.kruise.io", resource: "daemonsets", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "daemonsets", subresource: "finalizers", verbs: []string{"update"}},
		{group: "apps.kruise.io", resource: "ephemeraljobs", verbs: []string{"get", "list", "watch", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "ephemeraljobs", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "sidecarsets", verbs: []string{"get", "list", "watch"}},
		{group: "apps.kruise.io", resource: "sidecarsets", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "sidecarsets", subresource: "finalizers", verbs: []string{"update"}},
		{group: "apps.kruise.io", resource: "imagelistpulljobs", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "imagelistpulljobs", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "imagelistpulljobs", subresource: "finalizers", verbs: []string{"update"}},
		{group: "apps.kruise.io", resource: "imagepulljobs", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "imagepulljobs", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "nodeimages", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "apps.kruise.io", resource: "nodeimages", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "statefulsets", verbs: []string{"get", "list", "watch"}},
		{group: "apps.kruise.io", resource: "statefulsets", subresource: "status", verbs: []string{"patch"}},
		{group: "apps.kruise.io", resource: "statefulsets", subresource: "finalizers", verbs: []string{"update"}},
		{group: "*", resource: "*", subresource: "scale", verbs: []string{"get"}},
		{group: "", resource: "replicationcontrollers", verbs: []string{"get", "list", "watch"}},
		{group: "apps", resource: "deployments", verbs: []string{"get", "list", "watch"}},
		{group: "apps", resource: "replicasets", verbs: []string{"get", "list", "watch"}},
		{group: "apps", resource: "daemonsets", verbs: []string{"get"}},
		{group: "apps", resource: "statefulsets", verbs: []string{"get", "list", "watch"}},
		{group: "batch", resource: "jobs", verbs: []string{"get", "list", "watch", "create", "delete"}},
		{group: "policy", resource: "poddisruptionbudgets", verbs: []string{"get", "list", "watch"}},
		{group: "policy.kruise.io", resource: "podunavailablebudgets", verbs: []string{"get", "list", "watch"}},
		{group: "policy.kruise.io", resource: "podunavailablebudgets", subresource: "status", verbs: []string{"patch"}},
		{group: "storage.k8s.io", resource: "storageclasses", verbs: []string{"get", "list"}},
	}
}

// check finds out before anything is started whether the cluster is one that the manager can work in, and says everything that stands against
// it at once.
func check(ctx context.Context, c client.Client, d discovery.ServerVersionInterface, needs []need) error {
	if err := checkVersion(d); err != nil {
		return err
	}
	return errors.Join(checkCRDs(ctx, c), checkRights(ctx, c, needs))
}

func checkVersion(d discovery.ServerVersionInterface) error {
	info, err := d.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	server, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return fmt.Errorf("reading the API server's version %q: %w", info.GitVersion, err)
	}
	if server.LessThan(version.MustParseGeneric(oldestServer)) {
		return fmt.Errorf("the API server is %s, which is too old: Kruise needs Kubernetes %s or later", info.GitVersion, oldestServer)
	}
	return nil
}

func checkCRDs(ctx context.Context, c client.Client) error {
	var missing []string
	for _, name := range crds() {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return fmt.Errorf("looking for CRD %s: %w", name, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("CRDs are not installed: %s; install them with: kubectl apply --server-side -k config/crd", strings.Join(missing, ", "))
	}
	return nil
}

func checkRights(ctx context.Context, c client.Client, needs []need) error {
	var missing []string
	for _, n := range needs {
		for _, verb := range n.verbs {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: n.group, Resource: n.resource, Subresource: n.subresource, Verb: verb, Namespace: n.namespace},
			}}
			if err := c.Create(ctx, review); err != nil {
				return fmt.Errorf("asking for our own rights: %w", err)
			}
			if !review.Status.Allowed {
				missing = append(missing, verb+" "+n.String())
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the manager's account may not: %s; grant it the ClusterRole kruise-manager-role and the other roles in config/rbac", strings.Join(missing, ", "))
	}
	return nil
}

func (n need) String() string {
	out := n.resource
	if n.group != "" {
		out += "." + n.group
	}
	if n.subresource != "" {
		out += "/" + n.subresource
	}
	if n.namespace != "" {
		out += " in namespace " + n.namespace
	}
	return out
}
