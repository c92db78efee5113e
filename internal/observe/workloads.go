package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// Workload is what a budget has to know of an object that makes Pods.
type Workload struct {
	schema.GroupKind
	Name string
	UID  types.UID
	// Replicas is the number of Pods that it should have; nil if it does not say.
	Replicas *int32
	// Deleting means that it is being deleted.
	Deleting bool
	// PodLabels are the labels of the Pods that it makes; nil if it is of a kind that is only known by its scale.
	PodLabels map[string]string
	// Selector selects its Pods; only known of what is known by its scale.
	Selector string
	// Polled means that nothing tells when it changes.
	Polled bool
}

// Workloads reads workloads.
type Workloads struct {
	Reader
	// Scales is asked for the kinds that no cache has.
	Scales *Scales
}

// workloadKinds are the kinds that a cache has when somebody asks for them.
func workloadKinds() map[schema.GroupKind]func() client.Object {
	return map[schema.GroupKind]func() client.Object{
		{Group: "apps", Kind: "Deployment"}:                      func() client.Object { return &appsv1.Deployment{} },
		{Group: "apps", Kind: "ReplicaSet"}:                      func() client.Object { return &appsv1.ReplicaSet{} },
		{Group: "apps", Kind: "StatefulSet"}:                     func() client.Object { return &appsv1.StatefulSet{} },
		{Kind: "ReplicationController"}:                          func() client.Object { return &corev1.ReplicationController{} },
		{Group: v1beta1.GroupVersion.Group, Kind: "CloneSet"}:    func() client.Object { return &v1beta1.CloneSet{} },
		{Group: v1beta1.GroupVersion.Group, Kind: "StatefulSet"}: func() client.Object { return &v1beta1.StatefulSet{} },
	}
}

// withoutReplicas reports whether objects of a kind are known to have as many Pods as it takes, so that no scale need be read.
func withoutReplicas(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Node"},
		schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "DaemonSet"}, schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "BroadcastJob"}:
		return true
	}
	return false
}

// WorkloadOf returns what is to be known of a workload of a kind that a cache has; false for any other object.
func WorkloadOf(object client.Object) (Workload, bool) {
	w := Workload{Name: object.GetName(), UID: object.GetUID(), Deleting: object.GetDeletionTimestamp() != nil}
	var template *corev1.PodTemplateSpec
	switch o := object.(type) {
	case *appsv1.Deployment:
		w.GroupKind, w.Replicas, template = schema.GroupKind{Group: "apps", Kind: "Deployment"}, o.Spec.Replicas, &o.Spec.Template
	case *appsv1.ReplicaSet:
		w.GroupKind, w.Replicas, template = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, o.Spec.Replicas, &o.Spec.Template
	case *appsv1.StatefulSet:
		w.GroupKind, w.Replicas, template = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, o.Spec.Replicas, &o.Spec.Template
	case *corev1.ReplicationController:
		w.GroupKind, w.Replicas, template = schema.GroupKind{Kind: "ReplicationController"}, o.Spec.Replicas, o.Spec.Template
	case *v1beta1.CloneSet:
		w.GroupKind, w.Replicas, template = v1beta1.GroupVersion.WithKind("CloneSet").GroupKind(), o.Spec.Replicas, &o.Spec.Template
	case *v1beta1.StatefulSet:
		w.GroupKind, w.Replicas, template = v1beta1.GroupVersion.WithKind("StatefulSet").GroupKind(), o.Spec.Replicas, &o.Spec.Template
	default:
		return Workload{}, false
	}
	if w.Replicas == nil {
		one := int32(1) // the default of all these kinds
		w.Replicas = &one
	}
	if template != nil {
		w.PodLabels = template.Labels
	}
	return w, true
}

// SlimWorkload leaves of a workload of Kubernetes what identifies it, whose it is, and what WorkloadOf returns.
func SlimWorkload(object any) (any, error) {
	var spec, slim *corev1.PodTemplateSpec
	switch o := object.(type) {
	case *appsv1.Deployment:
		template := o.Spec.Template
		o.Spec, o.Status = appsv1.DeploymentSpec{Replicas: o.Spec.Replicas}, appsv1.DeploymentStatus{}
		spec, slim = &template, &o.Spec.Template
	case *appsv1.ReplicaSet:
		template := o.Spec.Template
		o.Spec, o.Status = appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas}, appsv1.ReplicaSetStatus{}
		spec, slim = &template, &o.Spec.Template
	case *appsv1.StatefulSet:
		template := o.Spec.Template
		o.Spec, o.Status = appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas}, appsv1.StatefulSetStatus{}
		spec, slim = &template, &o.Spec.Template
	case *corev1.ReplicationController:
		template := o.Spec.Template
		o.Spec, o.Status = corev1.ReplicationControllerSpec{Replicas: o.Spec.Replicas, Template: &corev1.PodTemplateSpec{}}, corev1.ReplicationControllerStatus{}
		spec, slim = template, o.Spec.Template
	default:
		return Slim(object)
	}
	if spec != nil {
		slim.Labels = spec.Labels
	}
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
		meta.SetAnnotations(nil)
	}
	return object, nil
}

// Get returns a workload of any kind; nil if there is none of that name.
func (w Workloads) Get(ctx context.Context, namespace string, kind schema.GroupVersionKind, name string) (*Workload, error) {
	if withoutReplicas(kind.GroupKind()) {
		return &Workload{GroupKind: kind.GroupKind(), Name: name}, nil
	}
	object, err := w.object(ctx, namespace, kind.GroupKind(), name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case object == nil:
		return w.Scales.Get(ctx, namespace, kind, name)
	}
	found, _ := WorkloadOf(object)
	return &found, nil
}

// object returns a workload of a kind that a cache has, and nil for any other kind.
func (w Workloads) object(ctx context.Context, namespace string, kind schema.GroupKind, name string) (client.Object, error) {
	empty, cached := workloadKinds()[kind]
	if !cached {
		return nil, nil
	}
	object := empty()
	if err := w.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return object, nil
}

// Owner is a controller of an object.
type Owner struct {
	schema.GroupVersionKind
	Name string
}

// Chain returns the controller of a Pod, the controller of that, and so on. It is complete unless one of them could not be found, such as a
// ReplicaSet that a cache does not know yet.
func (w Workloads) Chain(ctx context.Context, p *corev1.Pod) (chain []Owner, complete bool, err error) {
	var object client.Object = p
	for len(chain) < longestChain {
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil {
			return chain, true, nil
		}
		owner := Owner{schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind), controller.Name}
		chain = append(chain, owner)
		object, err = w.object(ctx, p.Namespace, owner.GroupKind(), owner.Name)
		switch {
		case apierrors.IsNotFound(err):
			return chain, false, nil
		case err != nil:
			return nil, false, err
		case object == nil:
			return chain, true, nil
		case object.GetUID() != controller.UID:
			return chain, false, nil // another one of that name
		}
	}
	return chain, true, nil
}

// longestChain is more than any workload has owners above it.
const longestChain = 8

// ReplicaSets returns the UIDs of the ReplicaSets that an owner controls.
func (w Workloads) ReplicaSets(ctx context.Context, namespace string, owner types.UID) ([]types.UID, error) {
	var list appsv1.ReplicaSetList
	sets, err := List(ctx, w.Reader, &list, &list.Items, client.InNamespace(namespace))
	var out []types.UID
	for _, set := range sets {
		if isControlledBy(set, owner) {
			out = append(out, set.UID)
		}
	}
	return out, err
}

// Budgets returns the PodUnavailableBudgets of a namespace in the order of their names.
func (r Reader) Budgets(ctx context.Context, namespace string) ([]*policyv1beta1.PodUnavailableBudget, error) {
	var list policyv1beta1.PodUnavailableBudgetList
	budgets, err := List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
	slices.SortFunc(budgets, func(a, b *policyv1beta1.PodUnavailableBudget) int { return strings.Compare(a.Name, b.Name) })
	return budgets, err
}
