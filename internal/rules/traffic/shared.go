package traffic

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// SharedName returns the TrafficRouting that a Rollout names; empty if it names none. The field wins over the annotation.
func SharedName(r *v1beta1.Rollout) string {
	switch s := r.Spec.Strategy; {
	case s.Canary != nil && s.Canary.TrafficRoutingRef != "":
		return s.Canary.TrafficRoutingRef
	case s.BlueGreen != nil && s.BlueGreen.TrafficRoutingRef != "":
		return s.BlueGreen.TrafficRoutingRef
	}
	return r.Annotations[keys.TrafficRoutingName]
}

// maxFinalizer is the longest name that a finalizer may have behind its prefix.
const maxFinalizer = 63

// ProgressingFinalizer returns the finalizer by which a Rollout has a TrafficRouting lead traffic. Of a name that is longer than a
// finalizer may be, it has the beginning and a hash.
func ProgressingFinalizer(rollout string) string {
	if len(rollout) > maxFinalizer {
		h := fnv.New32a()
		_, _ = h.Write([]byte(rollout)) // a hash takes everything
		tail := fmt.Sprintf("-%08x", h.Sum32())
		rollout = strings.TrimRight(rollout[:maxFinalizer-len(tail)], "-.") + tail
	}
	return keys.TrafficRoutingProgressing + rollout
}

// IsShared reports whether the release of a Rollout has a TrafficRouting lead traffic.
func IsShared(t *v1alpha1.TrafficRouting, rollout string) bool {
	return slices.Contains(t.Finalizers, ProgressingFinalizer(rollout))
}

// Joined returns a TrafficRouting that leads traffic for the release of a Rollout, too; nil if it does already, or can't now, because it is
// being deleted or restores its routes.
func Joined(t *v1alpha1.TrafficRouting, rollout string) *v1alpha1.TrafficRouting {
	busy := t.Status.Phase == v1alpha1.TrafficRoutingPhaseFinalizing || t.Status.Phase == v1alpha1.TrafficRoutingPhaseTerminating
	if IsShared(t, rollout) || busy || t.DeletionTimestamp != nil {
		return nil
	}
	after := t.DeepCopy()
	after.Finalizers = append(after.Finalizers, ProgressingFinalizer(rollout))
	return after
}

// Left returns a TrafficRouting that leads no traffic for the release of a Rollout any more; nil if it does not anyway.
func Left(t *v1alpha1.TrafficRouting, rollout string) *v1alpha1.TrafficRouting {
	if !IsShared(t, rollout) {
		return nil
	}
	after := t.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == ProgressingFinalizer(rollout) })
	return after
}
