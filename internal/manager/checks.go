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

// pullSecretNeeds are the rights in the namespace of the Secrets that NodeImages name, where an earlier version has left copies.
func pullSecretNeeds(namespace string) []need {
	return []need{{group: "", resource: "secrets", verbs: readingAnd("delete"), namespace: namespace}}
}

// The verbs that are granted together.
func reading() []string { return []string{"get", "list", "watch"} }

func readingAnd(verbs ...string) []string { return append(reading(), verbs...) }

func managing() []string { return readingAnd("create", "patch", "delete") }

// Needs are the rights that the manager asks for at its start. The ClusterRole of the manifests grants these and no more of them.
func Needs() []need {
	all := []need{
		{group: "", resource: "pods", verbs: managing()},
		{group: "", resource: "pods", subresource: "status", verbs: []string{"patch"}},
		{group: "", resource: "pods", subresource: "resize", verbs: []string{"patch"}},
		{group: "", resource: "pods", subresource: "ephemeralcontainers", verbs: []string{"patch"}},
		{group: "", resource: "persistentvolumeclaims", verbs: managing()},
		{group: "", resource: "configmaps", verbs: managing()},
		{group: "", resource: "namespaces", verbs: reading()},
		{group: "", resource: "nodes", verbs: reading()},
		{group: "", resource: "events", verbs: []string{"create", "patch"}},
		{group: "", resource: "podtemplates", verbs: []string{"create"}},
		{group: "", resource: "replicationcontrollers", verbs: reading()},
		{group: "*", resource: "*", subresource: "scale", verbs: []string{"get"}},
		{group: "apps", resource: "controllerrevisions", verbs: managing()},
		{group: "apps", resource: "deployments", verbs: reading()},
		{group: "apps", resource: "replicasets", verbs: reading()},
		{group: "apps", resource: "daemonsets", verbs: []string{"get"}},
		{group: "apps", resource: "statefulsets", verbs: reading()},
		{group: "batch", resource: "jobs", verbs: readingAnd("create", "delete")},
		{group: "policy", resource: "poddisruptionbudgets", verbs: reading()},
		{group: "storage.k8s.io", resource: "storageclasses", verbs: []string{"get", "list"}},
	}
	const apps = "apps.kruise.io"
	for _, kind := range []need{
		{group: apps, resource: "advancedcronjobs", verbs: reading()},
		{group: apps, resource: "broadcastjobs", verbs: managing()},
		{group: apps, resource: "clonesets", verbs: readingAnd("patch")},
		{group: apps, resource: "containerrecreaterequests", verbs: managing()},
		{group: apps, resource: "daemonsets", verbs: reading()},
		{group: apps, resource: "ephemeraljobs", verbs: readingAnd("patch", "delete")},
		{group: apps, resource: "imagelistpulljobs", verbs: managing()},
		{group: apps, resource: "imagepulljobs", verbs: managing()},
		{group: apps, resource: "nodeimages", verbs: managing()},
		{group: apps, resource: "podprobemarkers", verbs: readingAnd("patch")},
		{group: apps, resource: "sidecarsets", verbs: reading()},
		{group: apps, resource: "statefulsets", verbs: reading()},
		{group: "policy.kruise.io", resource: "podunavailablebudgets", verbs: reading()},
	} {
		all = append(all, kind, need{group: kind.group, resource: kind.resource, subresource: "status", verbs: []string{"patch"}})
	}
	// Owner references that block the deletion of these need it.
	for _, owner := range []string{"advancedcronjobs", "broadcastjobs", "clonesets", "daemonsets", "imagelistpulljobs", "sidecarsets", "statefulsets"} {
		all = append(all, need{group: apps, resource: owner, subresource: "finalizers", verbs: []string{"update"}})
	}
	return append(all, need{group: apps, resource: "nodepodprobes", verbs: managing()})
}

// check finds out before anything is started whether the cluster is one that the manager can work in, and says everything that stands
// against it at once.
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
