package protection

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of objects that can be protected.
type Kind struct {
	schema.GroupVersionKind
	Resource string
}

// GroupResource returns the resource of the kind.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Contents returns the kinds of objects that are looked for in a namespace before it is deleted. Protected objects of other kinds, such as
// Secrets, which the manager may not read, are kept all the same: their own deletion is refused.
func Contents() []Kind {
	return slices.Concat(
		kinds("", "v1", "Service", "services", "PersistentVolumeClaim", "persistentvolumeclaims", "ConfigMap", "configmaps"),
		kinds("apps", "v1", "Deployment", "deployments", "ReplicaSet", "replicasets", "StatefulSet", "statefulsets",
			"DaemonSet", "daemonsets"),
		kinds("batch", "v1", "Job", "jobs", "CronJob", "cronjobs"),
		kinds("networking.k8s.io", "v1", "Ingress", "ingresses"),
		kinds("apps.kruise.io", "v1beta1", "CloneSet", "clonesets", "StatefulSet", "statefulsets", "DaemonSet", "daemonsets",
			"UnitedDeployment", "uniteddeployments", "BroadcastJob", "broadcastjobs", "AdvancedCronJob", "advancedcronjobs"),
		kinds("policy.kruise.io", "v1beta1", "PodUnavailableBudget", "podunavailablebudgets"),
	)
}

// kinds returns the kinds of a group, from their names and resources.
func kinds(group, version string, names ...string) []Kind {
	var out []Kind
	for pair := range slices.Chunk(names, 2) {
		out = append(out, Kind{schema.GroupVersionKind{Group: group, Version: version, Kind: pair[0]}, pair[1]})
	}
	return out
}
