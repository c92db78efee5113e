package rollout

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/internal/traffic"
)

// Routing leads traffic by the Services and routes that Rollouts name.
type Routing struct {
	traffic.Options
	// Listen has a listener told of routes of all kinds that caches hold; nil where there are none.
	Listen func(observe.Listener)
}

// Read implements Traffic.
func (o Routing) Read(ctx context.Context, r loop.Reads, rollout *v1beta1.Rollout, workload steer.Facts) (Routes, error) {
	shared, err := traffic.ObserveShared(ctx, r.Reader, rollout)
	if err != nil {
		return nil, err
	}
	if shared != nil {
		return shared, nil
	}
	w := traffic.Of(rollout)
	w.Stable = workload.StableHash
	w.Select.Label = cmp.Or(workload.RevisionLabel, revisionLabel(releases.GroupKind(rollout.Spec.WorkloadRef)))
	w.Select.Hash = workload.PodHash
	return o.Observe(ctx, r.Reader, w)
}

// revisionLabel returns the label by which a Service tells the versions of a workload apart, also if there is no such workload any more.
func revisionLabel(of schema.GroupKind) string {
	switch of.Kind {
	case "Deployment", "CloneSet":
		return appsv1.DefaultDeploymentUniqueLabelKey
	case "DaemonSet":
		if of.Group != appsv1.GroupName {
			return appsv1.DefaultDeploymentUniqueLabelKey
		}
	}
	return appsv1.ControllerRevisionHashLabelKey
}

// Watches implements Traffic: from the first Rollout on that leads traffic.
func (o Routing) Watches(cached observe.Reader) []loop.Watch {
	f := naming{cached}
	out := []loop.Watch{
		loop.Affected[client.Object](&corev1.Service{}, f.of(schema.GroupKind{Kind: "Service"})),
		loop.Affected[client.Object](&networkingv1.Ingress{}, f.of(schema.GroupKind{Group: networkingv1.GroupName, Kind: "Ingress"})),
		loop.Affected[client.Object](&v1alpha1.TrafficRouting{}, f.ofShared),
	}
	for i := range out {
		out[i].For = func(owner client.Object) bool { r, is := owner.(*v1beta1.Rollout); return is && leadsTraffic(r) }
	}
	return out
}

// Asked implements Traffic.
func (o Routing) Asked(cached observe.Reader, ask func(types.NamespacedName)) {
	if o.Listen == nil {
		return
	}
	o.Listen(func(kind schema.GroupKind, name types.NamespacedName) {
		found, err := naming{cached}.all(context.Background(), kind, name)
		if err != nil {
			return // of a cache, which fails only when it stops
		}
		for _, rollout := range found {
			ask(rollout)
		}
	})
}

// leadsTraffic reports whether a Rollout leads traffic, by itself or by a TrafficRouting.
func leadsTraffic(r *v1beta1.Rollout) bool {
	return len(traffic.Of(r).Refs) > 0 || rules.SharedName(r) != ""
}

// naming finds the Rollouts that name what leads traffic.
type naming struct{ observe.Reader }

func (n naming) rollouts(ctx context.Context, namespace string, fits func(*v1beta1.Rollout) bool) ([]types.NamespacedName, error) {
	var list v1beta1.RolloutList
	all, err := observe.List(ctx, n, &list, &list.Items, client.InNamespace(namespace))
	return observe.Keys(all, fits), err
}

func (n naming) all(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) ([]types.NamespacedName, error) {
	return n.rollouts(ctx, name.Namespace, func(r *v1beta1.Rollout) bool { return traffic.Names(traffic.Of(r).Refs, kind, name.Name) })
}

func (n naming) of(kind schema.GroupKind) func(context.Context, client.Object, client.Object) ([]types.NamespacedName, error) {
	return func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
		now, changed := latest(before, after)
		if !changed {
			return nil, nil
		}
		return n.all(ctx, kind, client.ObjectKeyFromObject(now))
	}
}

func (n naming) ofShared(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
	now, changed := latest(before, after)
	if !changed {
		return nil, nil
	}
	return n.rollouts(ctx, now.GetNamespace(), func(r *v1beta1.Rollout) bool { return rules.SharedName(r) == now.GetName() })
}

// latest returns an object as it is after a change, or was before its end, and whether there was a change.
func latest(before, after client.Object) (now client.Object, changed bool) {
	if after == nil {
		return before, true
	}
	return after, before == nil || before.GetResourceVersion() != after.GetResourceVersion()
}

var (
	_ Traffic = Routing{}
	_ Routes  = &traffic.Observed{}
	_ Routes  = &traffic.Shared{}
)
