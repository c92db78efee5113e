package access

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// WorkloadOfPod reads the workload that controls a Pod, itself or by a ReplicaSet.
func (c *Cluster) WorkloadOfPod(ctx context.Context, name string) (Object, error) {
	namespace, err := c.Namespace()
	if err != nil {
		return Object{}, err
	}
	reader, err := c.Client()
	if err != nil {
		return Object{}, err
	}
	var p corev1.Pod
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
		return Object{}, fmt.Errorf("reading pod/%s: %w", name, err)
	}
	owner := metav1.GetControllerOf(&p)
	if owner != nil && isReplicaSet(owner) {
		var set appsv1.ReplicaSet
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, &set); err != nil {
			return Object{}, fmt.Errorf("reading replicaset/%s, which has pod/%s: %w", owner.Name, name, err)
		}
		owner = metav1.GetControllerOf(&set)
	}
	if owner == nil {
		return Object{}, fmt.Errorf("pod/%s belongs to no workload: nothing is rolled out to it", name)
	}
	kind, err := kinds.Of(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind())
	if err != nil {
		return Object{}, fmt.Errorf("pod/%s belongs to %s %s: %w", name, owner.Kind, owner.Name, err)
	}
	return c.Get(ctx, kind, namespace, owner.Name)
}

func isReplicaSet(owner *metav1.OwnerReference) bool {
	is := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	return is == appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind()
}
