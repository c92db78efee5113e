package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// Questions is what is known of the questions to Pods.
type Questions interface {
	// Markers returns the PodProbeMarkers of a namespace.
	Markers(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error)
	// HasMachine reports whether it is known that there is a machine behind a node.
	HasMachine(ctx context.Context, node string) (bool, error)
}

// Probes tells the provider of a virtual node in annotations of a new Pod what PodProbeMarkers ask of it. A Pod that is on a node with a machine
// already needs none; of all others it is not known yet where they will run. It must come after all steps that add containers.
func Probes(known Questions) Step {
	return Step{Name: "probes", Run: func(ctx context.Context, s *Subject) error {
		p := *s.Pod()
		p.Namespace = s.Namespace
		if p.Spec.NodeName != "" {
			if real, err := known.HasMachine(ctx, p.Spec.NodeName); real || err != nil {
				return err
			}
		}
		markers, err := known.Markers(ctx, s.Namespace)
		if err != nil || len(markers) == 0 {
			return err
		}
		_, err = probe.NewMarkers(markers).Annotate(&p, s.Edit)
		return err
	}}
}

// CachedQuestions reads what is known of the questions to Pods from a cache.
type CachedQuestions struct{ cached client.Reader }

// NewCachedQuestions returns what a cache knows, and has the cache follow it.
func NewCachedQuestions(ctx context.Context, informers cache.Cache) (CachedQuestions, error) {
	for _, kind := range []client.Object{&v1alpha1.PodProbeMarker{}, &corev1.Node{}} {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return CachedQuestions{}, fmt.Errorf("following %T: %w", kind, err)
		}
	}
	return CachedQuestions{informers}, nil
}

// Markers implements Questions.
func (c CachedQuestions) Markers(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
	var list v1alpha1.PodProbeMarkerList
	if err := c.cached.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PodProbeMarkers: %w", err)
	}
	out := make([]*v1alpha1.PodProbeMarker, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// HasMachine implements Questions. A node that is not known may be anything.
func (c CachedQuestions) HasMachine(ctx context.Context, node string) (bool, error) {
	n := &corev1.Node{}
	err := c.cached.Get(ctx, client.ObjectKey{Name: node}, n)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading node %s: %w", node, err)
	}
	return n.Labels[keys.NodeType] != keys.NodeTypeVirtual, nil
}
