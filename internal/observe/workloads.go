package observe

import (
	"cmp"
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
	"github.com/seed-69ecc383/kruise/api/keys"
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

// workload is where an object of a kind that caches have says how many Pods it makes and what they are like.
type workload struct {
	kind     schema.GroupKind
	replicas **int32
	template *corev1.PodTemplateSpec
}

// workloadIn returns where a workload says that; false for any other object.
func workloadIn(object any) (workload, bool) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return workload{schema.GroupKind{Group: "apps", Kind: "Deployment"}, &o.Spec.Replicas, &o.Spec.Template}, true
	case *appsv1.ReplicaSet:
		return workload{schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, &o.Spec.Replicas, &o.Spec.Template}, true
	case *appsv1.StatefulSet:
		return workload{schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, &o.Spec.Replicas, &o.Spec.Template}, true
	case *corev1.ReplicationController:
		template := cmp.Or(o.Spec.Template, &corev1.PodTemplateSpec{})
		return workload{schema.GroupKind{Kind: "ReplicationController"}, &o.Spec.Replicas, template}, true
	case *v1beta1.CloneSet:
		return workload{v1beta1.GroupVersion.WithKind("CloneSet").GroupKind(), &o.Spec.Replicas, &o.Spec.Template}, true
	case *v1beta1.StatefulSet:
		return workload{v1beta1.GroupVersion.WithKind("StatefulSet").GroupKind(), &o.Spec.Replicas, &o.Spec.Template}, true
	}
	return workload{}, false
}

// NewWorkload returns an empty object of a kind that caches have; nil for any other kind.
func NewWorkload(kind schema.GroupKind) client.Object {
	for _, object := range []client.Object{
		&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &corev1.ReplicationController{},
		&v1beta1.CloneSet{}, &v1beta1.StatefulSet{},
	} {
		if w, _ := workloadIn(object); w.kind == kind {
			return object
		}
	}
	return nil
}

// withoutReplicas reports whether objects of a kind are known to have as many Pods as it takes, so that no scale need be read.
func withoutReplicas(kind schema.GroupKind) bool {
	switch kind.String() {
	case "DaemonSet.apps", "Job.batch", "Node", "DaemonSet.apps.kruise.io", "BroadcastJob.apps.kruise.io":
		return true
	}
	return false
}

// WorkloadOf returns what is to be known of a workload of a kind that a cache has; false for any other object.
func WorkloadOf(object client.Object) (Workload, bool) {
	w, ok := workloadIn(object)
	if !ok {
		return Workload{}, false
	}
	replicas := *w.replicas
	if replicas == nil {
		one := int32(1) // the default of all these kinds
		replicas = &one
	}
	return Workload{
		GroupKind: w.kind, Name: object.GetName(), UID: object.GetUID(), Deleting: object.GetDeletionTimestamp() != nil,
		Replicas: replicas, PodLabels: w.template.Labels,
	}, true
}

// SlimWorkload leaves of a workload of Kubernetes what identifies it, whose it is, and what WorkloadOf returns; of a StatefulSet also how
// its Pods are numbered, and the annotations that ask for a PersistentPodState. The workloads of a UnitedDeployment stay as they are.
func SlimWorkload(object any) (any, error) {
	before, ok := workloadIn(object)
	if !ok || before.kind.Group == v1beta1.GroupVersion.Group || isOfSubset(object) {
		return Slim(object)
	}
	replicas, labels := *before.replicas, before.template.Labels
	var annotations map[string]string
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Spec, o.Status = appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{}
	case *appsv1.ReplicaSet:
		annotations = wishes(o.Annotations)
		o.Spec, o.Status = appsv1.ReplicaSetSpec{}, appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		annotations = wishes(o.Annotations)
		o.Spec, o.Status = appsv1.StatefulSetSpec{Ordinals: o.Spec.Ordinals}, appsv1.StatefulSetStatus{}
	case *corev1.ReplicationController:
		o.Spec = corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}
		o.Status = corev1.ReplicationControllerStatus{}
	}
	after, _ := workloadIn(object)
	*after.replicas, after.template.Labels = replicas, labels
	if meta, ok := object.(metav1.Object); ok {
		meta.SetAnnotations(annotations)
	}
	return Slim(object)
}

// RevisionOfDeployment is the annotation by which a Deployment numbers its ReplicaSets: the highest one is that of the present template.
const RevisionOfDeployment = "deployment.kubernetes.io/revision"

// wishes returns the annotations of a workload of Kubernetes that controllers of ours read; nil if there are none.
func wishes(annotations map[string]string) map[string]string {
	var out map[string]string
	for _, key := range []string{
		RevisionOfDeployment, keys.GeneratePodState, keys.RequiredTopology, keys.PreferredTopology, keys.PersistentAnnotations,
	} {
		if value, ok := annotations[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// isOfSubset reports whether a UnitedDeployment controls an object.
func isOfSubset(object any) bool {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return false
	}
	controller := metav1.GetControllerOfNoCopy(accessor)
	return controller != nil && controller.Kind == "UnitedDeployment" &&
		strings.HasPrefix(controller.APIVersion, v1beta1.GroupVersion.Group+"/")
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
	object := NewWorkload(kind)
	if object == nil {
		return nil, nil
	}
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
