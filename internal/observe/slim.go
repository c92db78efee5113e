package observe

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Slim takes out of an object, before a cache stores it, what nothing reads: the record of field managers, which can be a third of a Pod.
func Slim(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// SlimJob leaves of a Job what identifies it, how far it has come, and how many Pods it runs at a time.
func SlimJob(object any) (any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		job.Spec = batchv1.JobSpec{Parallelism: job.Spec.Parallelism}
	}
	return Slim(object)
}

// SlimPod does the same for Pods, and leaves of a Pod that neither a workload of the API group controls nor any controller wants for
// another reason only its outline: what identifies it, where it runs, what its containers are doing, and annotations that are read. The
// informers of the cache must come from NewInformer, which makes Pods of outlines again.
func SlimPod(group string, named *AnnotationKeys, wanted ...func(*corev1.Pod) bool) func(any) (any, error) {
	shared := &outliner{}
	return func(object any) (any, error) {
		p, ok := object.(*corev1.Pod)
		if !ok {
			return Slim(object)
		}
		p.ManagedFields = nil
		if controller := metav1.GetControllerOfNoCopy(p); controller != nil {
			if version, err := schema.ParseGroupVersion(controller.APIVersion); err == nil && version.Group == group {
				return p, shared.share(p)
			}
		}
		if slices.ContainsFunc(wanted, func(wants func(*corev1.Pod) bool) bool { return wants(p) }) {
			return p, shared.share(p)
		}
		return shared.outline(p, named.kept(p.Annotations))
	}
}

// SlimNode leaves of a node what says which Pods fit it, its labels, its taints, whether it is cordoned and its size, and since when it is
// Ready. The rest, above all the images that it has, is many times that.
func SlimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return Slim(object)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{Allocatable: node.Status.Allocatable, Conditions: readyCondition(node)},
	}, nil
}

// SlimConfigMap leaves out of a ConfigMap its data, which can be large and which nothing reads from a cache.
func SlimConfigMap(object any) (any, error) {
	if c, ok := object.(*corev1.ConfigMap); ok {
		c.Data, c.BinaryData = nil, nil
	}
	return Slim(object)
}

// readyCondition returns the condition Ready without its heartbeat, its only part that changes all the time.
func readyCondition(node *corev1.Node) []corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return nil
}
