package steer

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Fits says which field of a workload of a kind that is only like a StatefulSet does not fit one, so that it can't be released; empty if
// all do, and for workloads of known kinds.
func Fits(o Objects) string {
	workload, is := o.Workload.(*unstructured.Unstructured)
	if !is {
		return ""
	}
	for _, check := range []func(map[string]any) string{isCounted, hasTemplate, isPartitioned, hasStatus} {
		if why := check(workload.Object); why != "" {
			return why
		}
	}
	if workload.GetLabels()[keys.WorkloadType] != "statefulset" {
		return fmt.Sprintf("metadata.labels[%s] is %q: write statefulset, which says that the kind is like one", keys.WorkloadType,
			workload.GetLabels()[keys.WorkloadType])
	}
	for _, p := range o.Pods {
		if pod.IsActive(p) && p.Labels[appsv1.ControllerRevisionHashLabelKey] == "" {
			return fmt.Sprintf("Pod %s has no label %s, which tells its revision", p.Name, appsv1.ControllerRevisionHashLabelKey)
		}
	}
	return ""
}

// Lacks says what a workload of a kind that is only like a StatefulSet does not have yet, and may get by itself; empty if nothing.
func Lacks(o Objects) string {
	workload, is := o.Workload.(*unstructured.Unstructured)
	if !is {
		return ""
	}
	if _, there := number32(workload.Object, partitionPath()...); !there {
		return strings.Join(partitionPath(), ".") + " is not there: 0 is written, which stays if the kind has such a field"
	}
	if n, _, _ := unstructured.NestedInt64(workload.Object, "status", "observedGeneration"); n == 0 {
		return "status.observedGeneration is not there: the controller of the kind has not written it"
	}
	for _, name := range []string{"currentRevision", "updateRevision"} {
		if text(workload.Object, "status", name) == "" {
			return "status." + name + " is not there: the controller of the kind has not written it"
		}
	}
	return ""
}

func isCounted(o map[string]any) string {
	if n, there := number32(o, "spec", "replicas"); !there || n < 0 {
		return "spec.replicas is no whole number"
	}
	return ""
}

func hasTemplate(o map[string]any) string {
	if selector, is := field(o, "spec", "selector").(map[string]any); !is || len(selector) == 0 {
		return "spec.selector is no selector of labels"
	}
	template, is := field(o, "spec", "template").(map[string]any)
	if !is {
		return "spec.template is no Pod template"
	}
	var pods corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pods); err != nil {
		return fmt.Sprintf("spec.template is no Pod template: %v", err)
	}
	if len(pods.Spec.Containers) == 0 {
		return "spec.template.spec.containers are not there"
	}
	return ""
}

func isPartitioned(o map[string]any) string {
	if !isRolling(o) {
		return fmt.Sprintf("spec.updateStrategy.type is %v, and only RollingUpdate is released in steps",
			field(o, "spec", "updateStrategy", "type"))
	}
	if _, there := number32(o, partitionPath()...); !there && field(o, partitionPath()...) != nil {
		return strings.Join(partitionPath(), ".") + " is no whole number"
	}
	for _, path := range [][]string{partitionPath()[:2], partitionPath()[:3]} {
		if value := field(o, path...); value != nil {
			if _, is := value.(map[string]any); !is {
				return strings.Join(path, ".") + " is no object"
			}
		}
	}
	return ""
}

// hasStatus takes a number that is not there for 0: many kinds leave it out then.
func hasStatus(o map[string]any) string {
	numbers := []string{
		"observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "updatedReadyReplicas",
	}
	for _, name := range numbers {
		if value := field(o, "status", name); value != nil {
			if _, is := value.(int64); !is {
				return "status." + name + " is no whole number"
			}
		}
	}
	for _, name := range []string{"currentRevision", "updateRevision"} {
		if value := field(o, "status", name); value != nil {
			if _, is := value.(string); !is {
				return "status." + name + " is no text"
			}
		}
	}
	return ""
}
