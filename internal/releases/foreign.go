package releases

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Foreign has workloads be of kinds that are only like a StatefulSet.
type Foreign interface {
	// Hold returns nil once the cache has all workloads of a kind, and the manager may read and patch them. The error is an
	// UnusableError where that takes somebody who installs the kind or gives the manager rights.
	Hold(ctx context.Context, kind schema.GroupVersionKind) error
	// Intercepts reports whether API servers send the manager the changes of workloads of a kind.
	Intercepts(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
	// Listen has a listener told of workloads of these kinds that have come, changed or gone.
	Listen(listener observe.Listener)
}

// UnusableRecheck is when to look again at a kind that can't be used: neither rights nor kinds that are installed send an event.
const UnusableRecheck = 10 * time.Second

// UnusableError says why workloads of a kind can't be read or written, and what would free it.
type UnusableError struct{ Why string }

// Error returns it.
func (e *UnusableError) Error() string { return e.Why }

// KindOf returns how the workload of a reference is steered in a style; false if releases can't steer it.
func KindOf(ref v1beta1.WorkloadReference, style v1beta1.RollingStyle, foreign Foreign) (steer.Kind, bool) {
	if foreign == nil {
		return steer.Of(GroupKind(ref), style)
	}
	return steer.AnyOf(GroupKind(ref), style)
}

// Asked has passes asked for over those that have a workload of which no cache was told before it was named.
func (f Finder) Asked(foreign Foreign, ask func(types.NamespacedName)) {
	if foreign == nil {
		return
	}
	foreign.Listen(func(kind schema.GroupKind, name types.NamespacedName) {
		found, err := f.keys(context.Background(), name.Namespace, kind, name.Name)
		if err != nil {
			return // of a cache, which fails only when it stops
		}
		for _, one := range found {
			ask(one)
		}
	})
}

// IsKnown tells whether a reference names a workload of a kind that is known, and not only like one.
func IsKnown(ref v1beta1.WorkloadReference) bool { return steer.Empty(GroupKind(ref)) != nil }

// gvkOf returns the kind that a reference names, in its version.
func gvkOf(ref v1beta1.WorkloadReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}
