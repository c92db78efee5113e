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
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

const (
	// maxBase and suffixLength are how the API server itself makes names: from as much of generateName, and so many random characters.
	maxBase      = 58
	suffixLength = 5
	// dryRunSuffix is at the end of a name that no Pod will have.
	dryRunSuffix = "xxxxx"
)

// LaunchOrder makes the containers of Pods that ask for it start in order of their priorities. The barrier that holds them back is named
// after the Pod, so that a Pod without a name gets one here, unless nothing will be stored. It must come after all steps that add
// containers. random returns a text of a length.
func LaunchOrder(random func(length int) string) Step {
	return Step{Name: "launch", Run: func(_ context.Context, s *Subject) error {
		p := s.Pod()
		priorities, err := launch.Priorities(p)
		switch {
		case err != nil:
			return Denied{err}
		case priorities == nil && !launch.HasBarrierEnv(p):
			return nil
		case priorities == nil:
			launch.SetBarrier(s.Edit(), "", nil)
			return nil
		}
		name := p.Name
		if name == "" {
			base := p.GenerateName
			if base == "" {
				return nil // the API server refuses a Pod without any name
			}
			name = base[:min(len(base), maxBase)] + dryRunSuffix
			if !s.DryRun {
				name = base[:min(len(base), maxBase)] + random(suffixLength)
				s.Edit().Name = name
			}
		}
		barrier, err := launch.BarrierName(name)
		if err != nil {
			return Denied{err}
		}
		launch.SetBarrier(s.Edit(), barrier, priorities)
		return nil
	}}
}

// ProbeReader reads what decides on the probes of a Pod.
type ProbeReader interface {
	// Markers returns the PodProbeMarkers of a namespace.
	Markers(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error)
	// HasMachine reports whether a node is known to be a real one, with a daemon.
	HasMachine(ctx context.Context, node string) (bool, error)
}

// Probes writes the probes of PodProbeMarkers into annotations of a new Pod, for the provider of a virtual node. A Pod that is bound to a
// real node needs none; for all others it is not known yet where they will run. It must come after all steps that add containers.
func Probes(known ProbeReader) Step {
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

// CachedProbeReader is a ProbeReader over a cache.
type CachedProbeReader struct{ cached client.Reader }

// NewCachedProbeReader returns a reader, and starts the informers that it needs.
func NewCachedProbeReader(ctx context.Context, informers cache.Cache) (CachedProbeReader, error) {
	for _, kind := range []client.Object{&v1alpha1.PodProbeMarker{}, &corev1.Node{}} {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return CachedProbeReader{}, fmt.Errorf("following %T: %w", kind, err)
		}
	}
	return CachedProbeReader{informers}, nil
}

// Markers implements ProbeReader.
func (c CachedProbeReader) Markers(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
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

// HasMachine implements ProbeReader. A node that is not in the cache may be virtual.
func (c CachedProbeReader) HasMachine(ctx context.Context, node string) (bool, error) {
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
