package releases

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// GroupKind returns the group and kind of a workload.
func GroupKind(ref v1beta1.WorkloadReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// Workloads returns an empty object of each kind of workloads that is known.
func Workloads() map[schema.GroupKind]client.Object {
	out := map[schema.GroupKind]client.Object{}
	for _, of := range steer.Releasable() {
		out[of] = steer.Empty(of)
	}
	return out
}

// Source is where workloads are read.
type Source struct {
	observe.Reader
	// Foreign is asked before a workload of a kind is read that is only like a StatefulSet; nil where none is.
	Foreign Foreign
}

// Read reads a workload and what belongs to it. The workload is nil if there is none of that name, or no such kind in the cluster. The
// error is an UnusableError if its kind is not known, and can't be used.
func (r Source) Read(ctx context.Context, namespace string, ref v1beta1.WorkloadReference, now time.Time) (steer.Objects, error) {
	o := steer.Objects{Now: now}
	object := Empty(ref)
	switch {
	case object == nil, !IsKnown(ref) && r.Foreign == nil:
		return o, nil
	case !IsKnown(ref):
		if err := r.Foreign.Hold(ctx, gvkOf(ref)); err != nil {
			return o, err
		}
	}
	err := r.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return o, nil
	case err != nil:
		return o, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	o.Workload = object
	return o, ReadRest(ctx, r.Reader, &o)
}

// Empty returns an empty object of the kind that a reference names; nil if no workload can be of that kind.
func Empty(ref v1beta1.WorkloadReference) client.Object {
	of := GroupKind(ref)
	if known := steer.Empty(of); known != nil {
		return known
	}
	if !steer.IsForeign(of) {
		return nil
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(gvkOf(ref))
	return out
}

// ReadRest reads what belongs to a workload.
func ReadRest(ctx context.Context, r observe.Reader, o *steer.Objects) error {
	namespace, owners := o.Workload.GetNamespace(), []types.UID{o.Workload.GetUID()}
	if _, is := o.Workload.(*appsv1.Deployment); is {
		if err := readSets(ctx, r, o); err != nil {
			return err
		}
		owners = nil
		for _, set := range o.ReplicaSets {
			owners = append(owners, set.UID)
		}
	}
	for _, owner := range owners {
		pods, err := r.Pods(ctx, namespace, owner)
		if err != nil {
			return err
		}
		o.Pods = append(o.Pods, pods...)
	}
	slices.SortFunc(o.Pods, func(a, b *corev1.Pod) int { return cmpNames(a, b) })
	if !steer.ReadsRevisions(o.Workload) {
		return nil
	}
	revisions, err := r.Controlled(ctx, &appsv1.ControllerRevisionList{}, namespace, o.Workload.GetUID())
	for _, revision := range revisions {
		o.Revisions = append(o.Revisions, revision.(*appsv1.ControllerRevision))
	}
	return err
}

// readSets reads the second Deployments of a Deployment, and the ReplicaSets of all.
func readSets(ctx context.Context, r observe.Reader, o *steer.Objects) error {
	namespace := o.Workload.GetNamespace()
	var list appsv1.DeploymentList
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(steer.CanaryLabel(o.Workload.GetName())),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing second Deployments: %w", err)
	}
	owners := []types.UID{o.Workload.GetUID()}
	for i := range list.Items {
		if d := &list.Items[i]; ownerOfCanary(d) != "" {
			o.Canaries = append(o.Canaries, d)
			owners = append(owners, d.UID)
		}
	}
	slices.SortFunc(o.Canaries, func(a, b *appsv1.Deployment) int { return cmpNames(a, b) })
	for _, owner := range owners {
		sets, err := r.Controlled(ctx, &appsv1.ReplicaSetList{}, namespace, owner)
		if err != nil {
			return err
		}
		for _, set := range sets {
			o.ReplicaSets = append(o.ReplicaSets, set.(*appsv1.ReplicaSet))
		}
	}
	return nil
}

// ownerOfCanary returns the name of the BatchRelease, which is that of its Rollout, that a Deployment is the second one of; empty if it is
// none.
func ownerOfCanary(o client.Object) string {
	by := metav1.GetControllerOfNoCopy(o)
	if by == nil || by.Kind != "BatchRelease" || schema.FromAPIVersionAndKind(by.APIVersion, by.Kind).Group != v1beta1.GroupVersion.Group {
		return ""
	}
	return by.Name
}

func cmpNames(a, b client.Object) int {
	switch {
	case a.GetName() < b.GetName():
		return -1
	case a.GetName() > b.GetName():
		return 1
	}
	return 0
}
