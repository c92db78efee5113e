package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
)

// PodStateReader reads what decides on the place of a Pod that has run before. Callers must not change what they get.
type PodStateReader interface {
	// PodStates returns the PersistentPodStates of a namespace.
	PodStates(ctx context.Context, namespace string) ([]*v1beta1.PersistentPodState, error)
	// Nodes returns all nodes.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
}

// PodStates binds a new Pod to the place where the Pod of its name ran before, as the PersistentPodState of its workload has it. A request
// that stores nothing is left alone. It must come after the steps that write a node affinity of their own, so that both count.
func PodStates(known PodStateReader) Step {
	return Step{Name: "podstate", Run: func(ctx context.Context, s *Subject) error {
		p := s.Pod()
		controller := metav1.GetControllerOfNoCopy(p)
		if s.DryRun || p.Name == "" || controller == nil {
			return nil
		}
		all, err := known.PodStates(ctx, s.Namespace)
		if err != nil {
			return err
		}
		// Admission refuses a second one for a workload. Where two came at the same time, one of them counts, always the same.
		var state *v1beta1.PersistentPodState
		for _, one := range all {
			if podstate.IsFor(one, controller) && (state == nil || one.Name < state.Name) {
				state = one
			}
		}
		if state == nil {
			return nil
		}
		offered := func(string, string) bool { return true }
		if podstate.AsksForNodes(&state.Spec) {
			nodes, err := known.Nodes(ctx)
			if err != nil {
				return err
			}
			offered = podstate.Offered(&state.Spec, nodes)
		}
		podstate.Inject(p, state, offered, s.Edit)
		return nil
	}}
}

// CachedPodStateReader is a PodStateReader over a cache.
type CachedPodStateReader struct{ cached client.Reader }

// NewCachedPodStateReader returns a reader, and starts the informers that it needs.
func NewCachedPodStateReader(ctx context.Context, informers cache.Cache) (CachedPodStateReader, error) {
	for _, kind := range []client.Object{&v1beta1.PersistentPodState{}, &corev1.Node{}} {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return CachedPodStateReader{}, fmt.Errorf("following %T: %w", kind, err)
		}
	}
	return CachedPodStateReader{informers}, nil
}

// PodStates implements PodStateReader.
func (c CachedPodStateReader) PodStates(ctx context.Context, namespace string) ([]*v1beta1.PersistentPodState, error) {
	var list v1beta1.PersistentPodStateList
	if err := c.cached.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PersistentPodStates: %w", err)
	}
	return pointers(list.Items), nil
}

// Nodes implements PodStateReader.
func (c CachedPodStateReader) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	var list corev1.NodeList
	if err := c.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
