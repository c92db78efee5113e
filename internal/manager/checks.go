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

// need is a right on a resource that the manager cannot work without: the resource as kubectl writes it, and verbs.
type need struct {
	resource string
	verbs    []string
	// namespace is where the right is needed; empty for everywhere.
	namespace string
}

// The verbs that are granted together.
func reading() []string { return []string{"get", "list", "watch"} }

func readingAnd(verbs ...string) []string { return append(reading(), verbs...) }

func managing() []string { return readingAnd("create", "patch", "delete") }

// pullSecretNeeds are the rights in the namespace of the Secrets that NodeImages name, where an earlier version has left copies.
func pullSecretNeeds(namespace string) []need {
	return []need{{resource: "secrets", verbs: readingAnd("delete"), namespace: namespace}}
}

// Needs are the rights that the manager asks for at its start. The ClusterRole of the manifests grants these and no more of them.
func Needs() []need {
	all := []need{
		{resource: "pods", verbs: managing()},
		{resource: "pods/status", verbs: []string{"patch"}},
		{resource: "pods/resize", verbs: []string{"patch"}},
		{resource: "pods/ephemeralcontainers", verbs: []string{"patch"}},
		{resource: "persistentvolumeclaims", verbs: managing()},
		{resource: "configmaps", verbs: managing()},
		{resource: "namespaces", verbs: reading()},
		{resource: "nodes", verbs: reading()},
		{resource: "events", verbs: []string{"create", "patch"}},
		{resource: "podtemplates", verbs: []string{"create"}},
		{resource: "replicationcontrollers", verbs: reading()},
		{resource: "*.*/scale", verbs: []string{"get"}},
		{resource: "controllerrevisions.apps", verbs: managing()},
		{resource: "deployments.apps", verbs: reading()},
		{resource: "replicasets.apps", verbs: reading()},
		{resource: "daemonsets.apps", verbs: []string{"get"}},
		{resource: "statefulsets.apps", verbs: reading()},
		{resource: "jobs.batch", verbs: readingAnd("create", "delete")},
		{resource: "poddisruptionbudgets.policy", verbs: reading()},
		{resource: "storageclasses.storage.k8s.io", verbs: []string{"get", "list"}},
		{resource: "nodepodprobes.apps.kruise.io", verbs: managing()},
	}
	for _, kind := range []need{
		{resource: "advancedcronjobs.apps.kruise.io", verbs: reading()},
		{resource: "broadcastjobs.apps.kruise.io", verbs: managing()},
		{resource: "clonesets.apps.kruise.io", verbs: readingAnd("patch")},
		{resource: "containerrecreaterequests.apps.kruise.io", verbs: managing()},
		{resource: "daemonsets.apps.kruise.io", verbs: reading()},
		{resource: "ephemeraljobs.apps.kruise.io", verbs: readingAnd("patch", "delete")},
		{resource: "imagelistpulljobs.apps.kruise.io", verbs: managing()},
		{resource: "imagepulljobs.apps.kruise.io", verbs: managing()},
		{resource: "nodeimages.apps.kruise.io", verbs: managing()},
		{resource: "podprobemarkers.apps.kruise.io", verbs: readingAnd("patch")},
		{resource: "sidecarsets.apps.kruise.io", verbs: reading()},
		{resource: "statefulsets.apps.kruise.io", verbs: reading()},
		{resource: "podunavailablebudgets.policy.kruise.io", verbs: reading()},
	} {
		all = append(all, kind, need{resource: kind.resource + "/status", verbs: []string{"patch"}})
	}
	// Owner references that block the deletion of these need it.
	for _, owner := range []string{
		"advancedcronjobs", "broadcastjobs", "clonesets", "daemonsets", "imagelistpulljobs", "sidecarsets", "statefulsets",
	} {
		all = append(all, need{resource: owner + ".apps.kruise.io/finalizers", verbs: []string{"update"}})
	}
	return all
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
		return fmt.Errorf("CRDs are not installed: %s; install them with: kubectl apply --server-side -k config/crd",
			strings.Join(missing, ", "))
	}
	return nil
}

func checkRights(ctx context.Context, c client.Client, needs []need) error {
	var missing []string
	for _, n := range needs {
		for _, verb := range n.verbs {
			attributes := n.attributes(verb)
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
			}
			if err := c.Create(ctx, review); err != nil {
				return fmt.Errorf("asking for our own rights: %w", err)
			}
			if !review.Status.Allowed {
				missing = append(missing, verb+" "+n.String())
			}
		}
	}
	if len(missing) > 0 {
		const advice = "grant it the ClusterRole kruise-manager-role and the other roles in config/rbac"
		return fmt.Errorf("the manager's account may not: %s; %s", strings.Join(missing, ", "), advice)
	}
	return nil
}

func (n need) attributes(verb string) authorizationv1.ResourceAttributes {
	name, subresource, _ := strings.Cut(n.resource, "/")
	resource, group, _ := strings.Cut(name, ".")
	return authorizationv1.ResourceAttributes{
		Group: group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: n.namespace,
	}
}

func (n need) String() string {
	if n.namespace == "" {
		return n.resource
	}
	return n.resource + " in namespace " + n.namespace
}
