package migrate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// of returns an object of another kind with the name, the labels and the annotations of one.
func of(from *unstructured.Unstructured, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(kind)
	out.SetName(name)
	out.SetNamespace(from.GetNamespace())
	out.SetLabels(from.GetLabels())
	annotations := from.GetAnnotations()
	for _, key := range []string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"} {
		delete(annotations, key) // they tell of the other object
	}
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	return out
}

// CloneSetOf returns the CloneSet that makes the Pods of a Deployment, with no replicas yet.
func CloneSetOf(deployment *unstructured.Unstructured, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	out := of(deployment, kind, name)
	from, _, _ := unstructured.NestedMap(deployment.Object, "spec")
	spec := map[string]any{"replicas": int64(0)}
	for _, field := range []string{"selector", "template", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"} {
		if value, has := from[field]; has {
			spec[field] = value
		}
	}
	rolling := map[string]any{}
	if strategy, _, _ := unstructured.NestedMap(from, "strategy", "rollingUpdate"); strategy != nil {
		rolling = strategy
	}
	if kind, _, _ := unstructured.NestedString(from, "strategy", "type"); kind == "Recreate" {
		rolling["maxUnavailable"] = "100%"
	}
	spec["updateStrategy"] = map[string]any{"rollingUpdate": rolling}
	out.Object["spec"] = spec
	return out
}

// TakeoverOf returns a StatefulSet or DaemonSet with the spec of one of Kubernetes, in the group of Kruise: it takes over Pods and claims
// of that.
func TakeoverOf(native *unstructured.Unstructured, kind schema.GroupVersionKind) *unstructured.Unstructured {
	out := of(native, kind, native.GetName())
	out.Object["spec"], _, _ = unstructured.NestedMap(native.Object, "spec")
	return out
}

// Selects reports whether a selector of labels, which is not empty, selects them.
func Selects(selector, labels map[string]string) bool {
	if len(selector) == 0 {
		return false
	}
	keys := make([]string, 0, len(selector))
	for key := range selector {
		keys = append(keys, key)
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return labels[key] != selector[key] })
}
