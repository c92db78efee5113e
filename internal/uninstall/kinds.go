package uninstall

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind whose objects may need the managers.
type Kind struct {
	schema.GroupVersionResource
	// kind is the name of its lists without the word List.
	kind string
	// needs says what an object needs the managers for, such as "Pods: 5"; empty if it needs them for nothing.
	needs func(map[string]any) string
}

// Workloads are the kinds that have Pods, or whose sidecars do.
func Workloads() []Kind {
	apps := func(resource, kind string, needs func(map[string]any) string) Kind {
		return Kind{schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: resource}, kind, needs}
	}
	return []Kind{
		apps("advancedcronjobs", "AdvancedCronJob", starts),
		apps("broadcastjobs", "BroadcastJob", count("Pods", "status", "active")),
		apps("clonesets", "CloneSet", replicas),
		apps("daemonsets", "DaemonSet", count("Pods", "status", "desiredNumberScheduled")),
		apps("sidecarsets", "SidecarSet", count("Pods with its sidecars", "status", "matchedPods")),
		apps("statefulsets", "StatefulSet", replicas),
		apps("uniteddeployments", "UnitedDeployment", replicas),
	}
}

// Releases are the kinds of releases: one that is under way leaves its workload and its routes as they are at that moment.
func Releases() []Kind {
	release := func(version, resource, kind string, atRest ...string) Kind {
		return Kind{schema.GroupVersionResource{Group: "rollouts.kruise.io", Version: version, Resource: resource}, kind, phase(atRest)}
	}
	return []Kind{
		release("v1beta1", "rollouts", "Rollout", "", "Initial", "Healthy", "Disabled"),
		release("v1beta1", "batchreleases", "BatchRelease", "Completed"),
		release("v1alpha1", "trafficroutings", "TrafficRouting", "", "Initial", "Healthy"),
	}
}

// replicas counts the Pods that a workload has or is to have: a new one has none yet.
func replicas(o map[string]any) string {
	wanted, found, err := unstructured.NestedInt64(o, "spec", "replicas")
	if !found || err != nil {
		wanted = 1
	}
	has, _, _ := unstructured.NestedInt64(o, "status", "replicas") // nothing of another type is stored
	return number(max(wanted, has), "Pods")
}

func count(of string, fields ...string) func(map[string]any) string {
	return func(o map[string]any) string {
		n, _, _ := unstructured.NestedInt64(o, fields...) // nothing of another type is stored
		return number(n, of)
	}
}

func number(n int64, of string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d", of, n)
}

// starts says what an AdvancedCronJob does: it starts jobs unless it is paused, and may have some that run.
func starts(o map[string]any) string {
	if active, _, _ := unstructured.NestedSlice(o, "status", "active"); len(active) > 0 {
		return number(int64(len(active)), "jobs that run")
	}
	if paused, _, _ := unstructured.NestedBool(o, "spec", "paused"); !paused {
		return "a schedule"
	}
	return ""
}

func phase(atRest []string) func(map[string]any) string {
	return func(o map[string]any) string {
		is, _, _ := unstructured.NestedString(o, "status", "phase")
		for _, rest := range atRest {
			if is == rest {
				return ""
			}
		}
		if is == "" {
			is = "not begun"
		}
		return "phase " + is
	}
}
