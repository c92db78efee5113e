package kinds

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// RestartedAt is the annotation of a Pod template that kubectl rollout restart writes, too.
const RestartedAt = "kubectl.kubernetes.io/restartedAt"

// Restart gives the template of an object another annotation, so that its Pods are recreated. It refuses that where the controller would
// update the Pods in place, by the controller's own rule: then no container would restart.
func (k Kind) Restart(o *unstructured.Unstructured, at string, options inplace.Options) error {
	path := k.TemplatePath(o)
	if path == nil {
		return fmt.Errorf("%s can't be restarted: it has no Pod template", k)
	}
	before, err := template(o, path)
	if err != nil {
		return err
	}
	annotation := append(slices.Clone(path), "metadata", "annotations", RestartedAt)
	if err := unstructured.SetNestedField(o.Object, at, annotation...); err != nil {
		return fmt.Errorf("setting annotation %s: %w", RestartedAt, err)
	}
	policy := k.inPlacePolicy(o)
	if !strings.HasPrefix(policy, "InPlace") {
		return nil
	}
	after, err := template(o, path)
	if err != nil {
		return err
	}
	if change, refusal := inplace.DiffTemplates(before, after, options); refusal == nil && !change.TouchesContainers() {
		return fmt.Errorf("%s %s has podUpdatePolicy %s: its Pods would get the annotation in place, and no container would restart; "+
			"create a ContainerRecreateRequest for each Pod, or set podUpdatePolicy to ReCreate", k, o.GetName(), policy)
	}
	return nil
}

// inPlacePolicy returns how single Pods of a workload of Kruise are updated; empty for other kinds.
func (k Kind) inPlacePolicy(o *unstructured.Unstructured) string {
	field := ""
	switch {
	case !k.IsKruise():
	case k.GroupVersionKind.Kind == "DaemonSet":
		field = "rollingUpdateType"
	case k.GroupVersionKind.Kind == "CloneSet" || k.GroupVersionKind.Kind == "StatefulSet":
		field = "podUpdatePolicy"
	}
	policy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "rollingUpdate", field)
	return policy
}

func template(o *unstructured.Unstructured, path []string) (*corev1.PodTemplateSpec, error) {
	fields, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("reading the template of %s: %w", o.GetName(), err)
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, t); err != nil {
		return nil, fmt.Errorf("reading the template of %s: %w", o.GetName(), err)
	}
	return t, nil
}
