// Package protection says which objects may not be deleted because of the label policy.kruise.io/delete-protection, as far as an object
// says so itself. The ValidatingAdmissionPolicy kruise-deletion-protection states the same rule for the API server, which enforces it; this
// one serves to report and to count.
package protection

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// prefix begins every refusal. Wire: tools look for it.
const prefix = "forbidden by ResourcesProtectionDeletion for "

// Refusal returns why an object of a resource may not be deleted; empty if it may.
func Refusal(resource schema.GroupResource, o *unstructured.Unstructured) string {
	value := o.GetLabels()[keys.DeleteProtection]
	if value == keys.DeleteProtectionAlways {
		return Always()
	}
	if holds := holds(resource, o.Object); value == keys.DeleteProtectionCascading && holds != "" {
		return Cascading(holds)
	}
	return ""
}

// Always returns the refusal to delete an object that is never to be deleted.
func Always() string { return prefix + keys.DeleteProtection + "=" + keys.DeleteProtectionAlways }

// Cascading returns the refusal to delete an object that holds something, such as "replicas 2>0".
func Cascading(holds string) string {
	return prefix + keys.DeleteProtection + "=" + keys.DeleteProtectionCascading + " and " + holds
}

// Uncounted returns the refusal to delete an object of which it can't be found out what it holds.
func Uncounted(what string, err error) string {
	return fmt.Sprintf("%slist %s error: %v", prefix, what, err)
}

// Containing returns the refusal to delete a namespace with protected objects in it, by their names.
func Containing(objects string) string {
	return prefix + "protected objects in the namespace: " + objects
}

// holds returns what would be deleted with an object of a resource; empty for nothing, or if that is not to be seen from the object.
func holds(resource schema.GroupResource, o map[string]any) string {
	switch resource.String() {
	case "deployments.apps", "replicasets.apps", "statefulsets.apps",
		"clonesets.apps.kruise.io", "statefulsets.apps.kruise.io", "uniteddeployments.apps.kruise.io":
		return more("replicas", number(o, 1, "spec", "replicas"))
	case "daemonsets.apps", "daemonsets.apps.kruise.io":
		return more("replicas", number(o, 0, "status", "desiredNumberScheduled"))
	case "jobs.batch", "broadcastjobs.apps.kruise.io":
		return more("active pods", number(o, 0, "status", "active"))
	case "cronjobs.batch", "advancedcronjobs.apps.kruise.io":
		active, _, _ := unstructured.NestedSlice(o, "status", "active") // none if it is something else
		return more("active jobs", int64(len(active)))
	case "persistentvolumeclaims", "persistentvolumes":
		if phase, _, _ := unstructured.NestedString(o, "status", "phase"); phase == "Bound" {
			return `status "Bound"`
		}
	}
	return ""
}

func more(what string, n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %d>0", what, n)
}

// number returns the number at a path, or another one if there is none.
func number(o map[string]any, unset int64, path ...string) int64 {
	if n, found, err := unstructured.NestedInt64(o, path...); found && err == nil {
		return n
	}
	return unset
}
