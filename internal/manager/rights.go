package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/features"
)

// need is a right on a resource: the resource as kubectl writes it, and verbs.
type need struct {
	resource string
	verbs    []string
	// namespace is where the right is needed; empty for everywhere.
	namespace string
}

func to(verbs string, resources ...string) []need {
	var out []need
	for _, resource := range resources {
		out = append(out, need{resource: resource, verbs: strings.Fields(verbs)})
	}
	return out
}

// The verbs that are granted together.
const (
	reads   = "get list watch"
	manages = reads + " create patch delete"
)

// ownsObjects returns the rights to write the status of a kind of ours, and to have its objects own others such that deleting the owner in
// the foreground waits for them.
func ownsObjects(kind string) []need {
	return slices.Concat(to("patch", kind+".apps.kruise.io/status"), to("update", kind+".apps.kruise.io/finalizers"))
}

// needs are the rights that nothing works without: the caches and the webhooks that are always there.
func (s settings) needs() []need {
	all := slices.Concat(
		to(reads, "pods", "namespaces", "nodes", "controllerrevisions.apps", "sidecarsets.apps.kruise.io"),
		to("create patch", "events"), to("create", "podtemplates"),
	)
	if s.asksProviders() {
		all = append(all, to(reads, "podprobemarkers.apps.kruise.io")...)
	}
	return all
}

// workload returns the rights that a kind with revisions and updates in place needs.
func (s settings) workload(kind string, preDownload bool) []need {
	all := slices.Concat(ownsObjects(kind), to(reads, kind+".apps.kruise.io"),
		to(manages, "pods", "controllerrevisions.apps"), to("patch", "pods/status", "pods/resize"))
	if preDownload {
		all = append(all, to(manages, "imagepulljobs.apps.kruise.io")...)
	}
	return all
}

func (s settings) cloneSetNeeds() []need {
	return slices.Concat(s.workload("clonesets", s.gates.Enabled(features.PreDownloadImageForInPlaceUpdate)),
		to("patch", "clonesets.apps.kruise.io"), to(manages, "persistentvolumeclaims"))
}

func (s settings) statefulSetNeeds() []need {
	all := slices.Concat(s.workload("statefulsets", s.gates.Enabled(features.PreDownloadImageForInPlaceUpdate)),
		to(manages, "persistentvolumeclaims"), to("get", "statefulsets.apps"))
	if s.gates.Enabled(features.StatefulSetAutoDeletePVC) { // Pods own their claims
		all = append(all, to("update", "pods/finalizers")...)
	}
	if s.gates.Enabled(features.StatefulSetAutoResizePVCGate) {
		all = append(all, to("get list", "storageclasses.storage.k8s.io")...)
	}
	return all
}

func (s settings) daemonSetNeeds() []need {
	return slices.Concat(s.workload("daemonsets", s.gates.Enabled(features.PreDownloadImageForDaemonSetUpdate)),
		to("get", "daemonsets.apps"))
}

func sidecarSetNeeds() []need {
	return slices.Concat(ownsObjects("sidecarsets"), to(manages, "controllerrevisions.apps"), to("patch", "pods", "pods/status"))
}

func broadcastJobNeeds() []need {
	return slices.Concat(ownsObjects("broadcastjobs"), to(manages, "pods", "broadcastjobs.apps.kruise.io"))
}

func advancedCronJobNeeds() []need {
	return slices.Concat(ownsObjects("advancedcronjobs"), to(reads, "advancedcronjobs.apps.kruise.io"),
		to(reads+" create delete", "jobs.batch"), to(manages, "broadcastjobs.apps.kruise.io", "imagelistpulljobs.apps.kruise.io"))
}

func unitedDeploymentNeeds() []need {
	return slices.Concat(ownsObjects("uniteddeployments"), to(reads, "uniteddeployments.apps.kruise.io", "replicasets.apps"),
		to(manages, "deployments.apps", "statefulsets.apps", "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io",
			"controllerrevisions.apps"), to("patch delete", "pods"))
}

func ephemeralJobNeeds() []need {
	return slices.Concat(to("patch", "ephemeraljobs.apps.kruise.io/status", "pods/ephemeralcontainers"),
		to(reads+" patch delete", "ephemeraljobs.apps.kruise.io"))
}

func launchPriorityNeeds() []need {
	return slices.Concat(to(manages, "configmaps"), to("patch", "pods"))
}

func recreateNeeds() []need {
	return slices.Concat(to(manages, "containerrecreaterequests.apps.kruise.io"),
		to("patch", "containerrecreaterequests.apps.kruise.io/status", "pods", "pods/status"))
}

func probeNeeds() []need {
	return slices.Concat(to(reads+" patch", "podprobemarkers.apps.kruise.io"), to(manages, "nodepodprobes.apps.kruise.io"),
		to("patch", "podprobemarkers.apps.kruise.io/status", "pods", "pods/status"))
}

// podStateNeeds leaves out the scales: of a workload of another kind whose scale can't be read all records are kept.
func podStateNeeds() []need {
	return slices.Concat(to(manages, "persistentpodstates.apps.kruise.io"), to("patch", "persistentpodstates.apps.kruise.io/status"),
		to(reads, "statefulsets.apps", "statefulsets.apps.kruise.io", "clonesets.apps.kruise.io"), to("delete", "pods"))
}

// distributionNeeds are in a role of their own (config/resourcedistribution): who may write all Secrets may do anything.
func (s settings) distributionNeeds() []need {
	all := slices.Concat(ownsObjects("resourcedistributions"), to(reads, "resourcedistributions.apps.kruise.io"))
	for _, kind := range s.distributed() {
		all = append(all, to(manages, strings.TrimSuffix(kind.Resource+"."+kind.Group, "."))...)
	}
	return all
}

func (s settings) nodeImageNeeds() []need {
	all := slices.Concat(to(manages, "nodeimages.apps.kruise.io"), to("patch", "nodeimages.apps.kruise.io/status"))
	if s.gates.Enabled(features.ImagePullJobGate) {
		all = append(all, to(reads, "imagepulljobs.apps.kruise.io")...)
	}
	return all
}

func (s settings) pullJobNeeds() []need {
	return slices.Concat(s.nodeImageNeeds(), ownsObjects("imagelistpulljobs"),
		to(manages, "imagepulljobs.apps.kruise.io", "imagelistpulljobs.apps.kruise.io"), to("patch", "imagepulljobs.apps.kruise.io/status"))
}

// pullSecretNeeds are the rights in the namespace where an earlier version has left copies of Secrets.
func (s settings) pullSecretNeeds() []need {
	return append(to(reads, "nodeimages.apps.kruise.io"),
		need{resource: "secrets", verbs: strings.Fields(reads + " delete"), namespace: s.DaemonConfigNamespace})
}

func spreadNeeds() []need {
	return slices.Concat(to(reads, "workloadspreads.apps.kruise.io", "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io",
		"deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch"), to("get", "configmaps"),
		to("patch", "workloadspreads.apps.kruise.io/status", "pods"), to("delete", "pods"))
}

func budgetNeeds() []need {
	return slices.Concat(to(reads, "podunavailablebudgets.policy.kruise.io", "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io",
		"deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers", "poddisruptionbudgets.policy"),
		to("get", "*.*/scale"), to("patch", "podunavailablebudgets.policy.kruise.io/status", "pods"))
}

// account asks the API server what rights this process has. Each is asked for once.
type account struct {
	client client.Client
	known  map[string]bool
}

// lacks returns the rights that the account does not have, such as "patch pods/status".
func (a *account) lacks(ctx context.Context, needs []need) ([]string, error) {
	var missing []string
	for _, n := range needs {
		for _, verb := range n.verbs {
			text := verb + " " + n.String()
			allowed, known := a.known[text]
			if !known {
				attributes := n.attributes(verb)
				review := &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
				}
				if err := a.client.Create(ctx, review); err != nil {
					return nil, fmt.Errorf("asking for our own rights: %w", err)
				}
				allowed = review.Status.Allowed
				a.known[text] = allowed
			}
			if !allowed && !slices.Contains(missing, text) {
				missing = append(missing, text)
			}
		}
	}
	return missing, nil
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
