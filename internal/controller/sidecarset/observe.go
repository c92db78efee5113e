package sidecarset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Observe makes every read of a pass, but for the clock, which the caller reads.
func Observe(ctx context.Context, r observe.Reader, set *v1beta1.SidecarSet, o Options) (Snapshot, error) {
	s := Snapshot{Set: set, Options: o}
	var err error
	if s.Pods, err = r.InjectedPods(ctx, set.Name); err != nil {
		return Snapshot{}, err
	}
	if set.Spec.NamespaceSelector != nil {
		if s.Namespaces, err = namespaceLabels(ctx, r, s.Pods); err != nil {
			return Snapshot{}, err
		}
	}
	ours := labels.SelectorFromSet(labels.Set{keys.SidecarSetName: set.Name})
	if s.Revisions, err = r.Revisions(ctx, o.Namespace, ours, set.UID); err != nil {
		return Snapshot{}, err
	}
	if slices.ContainsFunc(s.Pods, sidecar.TellsUpgradable) {
		if s.Sets, err = setNames(ctx, r); err != nil {
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
