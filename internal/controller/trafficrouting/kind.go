package trafficrouting

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/internal/traffic"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	Traffic traffic.Options
	// Listen has a listener told of routes of all kinds that caches hold; nil where there are none.
	Listen func(observe.Listener)
}

// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=trafficroutings,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=trafficroutings/status,verbs=patch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=trafficroutings/finalizers,verbs=update
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouts,verbs=get;list;watch

// Kind is the controller of TrafficRoutings.
func Kind(o Options) loop.Kind[*v1alpha1.TrafficRouting, Snapshot, v1alpha1.TrafficRoutingStatus] {
	var cached observe.Reader
	return loop.Kind[*v1alpha1.TrafficRouting, Snapshot, v1alpha1.TrafficRoutingStatus]{
		Name: "trafficrouting",
		Watches: func(of observe.Reader) []loop.Watch {
			cached = of
			f := finder{of}
			out := []loop.Watch{
				loop.Affected[client.Object](&corev1.Service{}, f.of(schema.GroupKind{Kind: "Service"})),
				loop.Affected[client.Object](&networkingv1.Ingress{}, f.of(schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"})),
				loop.Affected(&v1beta1.Rollout{}, f.ofRollout),
			}
			for i := range out { // most clusters have no TrafficRouting
				out[i].Deferred = true
			}
			return out
		},
		Asked: func(ask func(types.NamespacedName)) {
			if o.Listen == nil {
				return
			}
			o.Listen(func(kind schema.GroupKind, name types.NamespacedName) {
				found, err := finder{cached}.naming(context.Background(), kind, name)
				if err != nil {
					return // of a cache, which fails only when it stops
				}
				for _, routing := range found {
					ask(routing)
				}
			})
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(t *v1alpha1.TrafficRouting) *v1alpha1.TrafficRoutingStatus { return &t.Status },
		Exact:    true, // Rollouts go by the phase
	}
}

// finder finds the TrafficRoutings that a change concerns.
type finder struct{ observe.Reader }

func (f finder) all(ctx context.Context, namespace string) ([]*v1alpha1.TrafficRouting, error) {
	var list v1alpha1.TrafficRoutingList
	return observe.List(ctx, f, &list, &list.Items, client.InNamespace(namespace))
}

func (f finder) naming(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) ([]types.NamespacedName, error) {
	all, err := f.all(ctx, name.Namespace)
	return observe.Keys(all, func(t *v1alpha1.TrafficRouting) bool { return traffic.Names(t.Spec.ObjectRef, kind, name.Name) }), err
}

func (f finder) of(kind schema.GroupKind) func(context.Context, client.Object, client.Object) ([]types.NamespacedName, error) {
	return func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
		if before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
			return nil, nil
		}
		now := after
		if now == nil {
			now = before
		}
		return f.naming(ctx, kind, client.ObjectKeyFromObject(now))
	}
}

// ofRollout returns those that a Rollout may have had lead traffic which is gone, or names another one by now.
func (f finder) ofRollout(ctx context.Context, before, after *v1beta1.Rollout) ([]types.NamespacedName, error) {
	if before == nil || after != nil && rules.SharedName(before) == rules.SharedName(after) {
		return nil, nil
	}
	all, err := f.all(ctx, before.Namespace)
	return observe.Keys(all, func(t *v1alpha1.TrafficRouting) bool { return len(t.Finalizers) > 0 }), err
}

// Snapshot is all that one pass may look at. It is read once and never changed.
type Snapshot struct {
	Routing *v1alpha1.TrafficRouting
	// Rollouts are the names of those that name it.
	Rollouts []string
	// Observed is what leads traffic.
	Observed *traffic.Observed
	Now      time.Time
}

func (o Options) read(ctx context.Context, r loop.Reads, t *v1alpha1.TrafficRouting) (s Snapshot, err error) {
	s.Routing, s.Now = t, r.Now
	var list v1beta1.RolloutList
	rollouts, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(t.Namespace))
	if err != nil {
		return s, err
	}
	for _, rollout := range rollouts {
		if rules.SharedName(rollout) == t.Name {
			s.Rollouts = append(s.Rollouts, rollout.Name)
		}
	}
	if s.Observed, err = o.Traffic.Observe(ctx, r.Reader, routingsOf(t)); err != nil {
		return s, fmt.Errorf("looking at what leads traffic: %w", err)
	}
	return s, nil
}

// routingsOf returns what a TrafficRouting says of traffic: one step.
func routingsOf(t *v1alpha1.TrafficRouting) traffic.Routings {
	step := v1beta1.Step{RequestHeaderModifier: t.Spec.Strategy.RequestHeaderModifier}
	if weight := t.Spec.Strategy.Weight; weight != nil {
		text := fmt.Sprintf("%d%%", *weight)
		step.Traffic = &text
	}
	for _, match := range t.Spec.Strategy.Matches {
		step.Matches = append(step.Matches, v1beta1.HTTPRouteMatch{Headers: match.Headers})
	}
	return traffic.Routings{
		Owner: t, Kind: v1alpha1.GroupVersion.WithKind("TrafficRouting"), Refs: t.Spec.ObjectRef, Shared: true, Steps: []v1beta1.Step{step},
	}
}
