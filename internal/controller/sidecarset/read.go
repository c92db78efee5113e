package sidecarset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.SidecarSet
	// Pods are those that the SidecarSet put sidecars into, in all namespaces, whether or not it still selects them.
	Pods []*corev1.Pod
	// Namespaces are the labels of the namespaces of those Pods; filled only where the SidecarSet selects namespaces.
	Namespaces map[string]map[string]string
	// Revisions are those of the SidecarSet.
	Revisions []*appsv1.ControllerRevision
	// Sets are the names of all SidecarSets; filled only where a Pod tells of some whether they can update it.
	Sets map[string]bool
	// Refused are Pods whose update was refused, and until when they are left alone for that.
	Refused map[types.UID]time.Time
	Now     time.Time
	Options Options
}

// read makes every read of a pass, but for the refused updates, which are kept in memory.
func (o Options) read(ctx context.Context, r loop.Reads, set *v1beta1.SidecarSet) (Snapshot, error) {
	s := Snapshot{Set: set, Now: r.Now, Options: o}
	var err error
	if s.Pods, err = r.InjectedPods(ctx, set.Name); err != nil {
		return Snapshot{}, err
	}
	if set.Spec.NamespaceSelector != nil {
		if s.Namespaces, err = namespaceLabels(ctx, r.Reader, s.Pods); err != nil {
			return Snapshot{}, err
		}
	}
	ours := labels.SelectorFromSet(labels.Set{keys.SidecarSetName: set.Name})
	if s.Revisions, err = r.Revisions(ctx, o.Namespace, ours, set.UID); err != nil {
		return Snapshot{}, err
	}
	if slices.ContainsFunc(s.Pods, sidecar.HasUpgradable) {
		if s.Sets, err = setNames(ctx, r.Reader); err != nil {
			return Snapshot{}, err
		}
	}
	return s, nil
}

// setNames returns the names of all SidecarSets.
func setNames(ctx context.Context, r observe.Reader) (map[string]bool, error) {
	var all v1beta1.SidecarSetList
	var options []client.ListOption
	if r.Indexed {
		options = append(options, client.UnsafeDisableDeepCopy)
	}
	if err := r.List(ctx, &all, options...); err != nil {
		return nil, fmt.Errorf("listing SidecarSets: %w", err)
	}
	names := make(map[string]bool, len(all.Items))
	for i := range all.Items {
		names[all.Items[i].Name] = true
	}
	return names, nil
}

// namespaceMetadata returns an empty namespace. Admission reads the same part of them, from the same cache.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// namespaceLabels returns the labels of the Pods' namespaces. One that is gone has none.
func namespaceLabels(ctx context.Context, r observe.Reader, pods []*corev1.Pod) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	for _, p := range pods {
		if _, known := out[p.Namespace]; known {
			continue
		}
		namespace := namespaceMetadata()
		if err := client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: p.Namespace}, namespace)); err != nil {
			return nil, fmt.Errorf("reading namespace %s: %w", p.Namespace, err)
		}
		out[p.Namespace] = namespace.Labels
	}
	return out, nil
}
