package releases

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// ByWorkload is the index of Rollouts and BatchReleases by their workload.
const ByWorkload = "kruise.workload"

// AddIndex adds the index ByWorkload to a cache, for Rollouts or for BatchReleases.
func AddIndex(ctx context.Context, indexer client.FieldIndexer, object client.Object) error {
	err := indexer.IndexField(ctx, object, ByWorkload, func(o client.Object) []string {
		if ref, ok := RefOf(o); ok {
			return []string{workloadKey(GroupKind(ref), ref.Name)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing %T by workload: %w", object, err)
	}
	return nil
}

// RefOf returns the workload of a Rollout or BatchRelease; false for any other object.
func RefOf(o client.Object) (v1beta1.WorkloadReference, bool) {
	switch o := o.(type) {
	case *v1beta1.Rollout:
		return o.Spec.WorkloadRef, true
	case *v1beta1.BatchRelease:
		return o.Spec.WorkloadRef, true
	}
	return v1beta1.WorkloadReference{}, false
}

func workloadKey(of schema.GroupKind, name string) string { return of.String() + "/" + name }

// Finder finds the Rollouts, or the BatchReleases, that a change concerns.
type Finder struct {
	observe.Reader
	// List returns an empty list of them.
	List func() client.ObjectList
}

// Of returns those of a workload.
func (f Finder) Of(ctx context.Context, namespace string, of schema.GroupKind, name string) ([]client.Object, error) {
	list := f.List()
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	key := workloadKey(of, name)
	if f.Indexed {
		options = append(options, client.MatchingFields{ByWorkload: key})
	}
	if err := f.Reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}
	var out []client.Object
	add := func(o client.Object) {
		if ref, ok := RefOf(o); ok && workloadKey(GroupKind(ref), ref.Name) == key {
			out = append(out, o)
		}
	}
	switch list := list.(type) {
	case *v1beta1.RolloutList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	case *v1beta1.BatchReleaseList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	}
	return out, nil
}

func (f Finder) keys(ctx context.Context, namespace string, of schema.GroupKind, name string) ([]types.NamespacedName, error) {
	found, err := f.Of(ctx, namespace, of, name)
	return observe.Keys(found, func(client.Object) bool { return true }), err
}

// ofWorkload returns those of a workload, and of a second Deployment the one that has it.
func (f Finder) ofWorkload(ctx context.Context, o client.Object, of schema.GroupKind) ([]types.NamespacedName, error) {
	if owner := ownerOfCanary(o); owner != "" {
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: owner}}, nil
	}
	return f.keys(ctx, o.GetNamespace(), of, o.GetName())
}

// Watches returns the events of workloads, each from the first owner on that names one of its kind: the cluster may not have all kinds.
func (f Finder) Watches() []loop.Watch {
	var out []loop.Watch
	for _, kind := range steer.Releasable() {
		object := Workloads()[kind]
		out = append(out, f.watch(object, kind, func(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
			return f.ofWorkload(ctx, o, kind)
		}))
	}
	deployment, daemonSet := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	return append(out, f.watch(&appsv1.ReplicaSet{}, deployment, f.ofController),
		f.watch(&appsv1.ControllerRevision{}, daemonSet, f.ofController))
}

// Pods returns the events of Pods of workloads.
func (f Finder) Pods() loop.Watch {
	return loop.Affected(&corev1.Pod{}, func(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
		one := after
		if one == nil {
			one = before
		}
		return f.ofController(ctx, one)
	})
}

// ofController returns those of the workload that controls an object, by itself or by a ReplicaSet.
func (f Finder) ofController(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	controller := metav1.GetControllerOfNoCopy(o)
	if controller == nil {
		return nil, nil
	}
	of := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind()
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: controller.Name}
	switch of {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		set, err := observe.Find(ctx, f.Reader, name, &appsv1.ReplicaSet{})
		if err != nil || set == nil {
			return nil, err
		}
		return f.ofController(ctx, set)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		if d, err := observe.Find(ctx, f.Reader, name, &appsv1.Deployment{}); err != nil || d != nil {
			if err != nil {
				return nil, err
			}
			return f.ofWorkload(ctx, d, of)
		}
	}
	return f.keys(ctx, o.GetNamespace(), of, controller.Name)
}

func (f Finder) watch(
	object client.Object, of schema.GroupKind, find func(context.Context, client.Object) ([]types.NamespacedName, error),
) loop.Watch {
	watch := loop.Affected(object, func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
		if before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
			return nil, nil
		}
		if after == nil {
			after = before
		}
		return find(ctx, after)
	})
	watch.For = func(owner client.Object) bool {
		ref, ok := RefOf(owner)
		return ok && GroupKind(ref) == of
	}
	return watch
}
