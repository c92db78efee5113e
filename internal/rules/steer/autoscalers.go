package steer

import (
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// turnedAwaySuffix is added to the name of what a HorizontalPodAutoscaler scales, so that it scales nothing.
//
// Wire: it is in users' objects.
const turnedAwaySuffix = "-DisableByRollout"

// TargetOf returns the kind and the name of what an autoscaler scales, or scaled before a release has turned it away.
func TargetOf(a *autoscalingv2.HorizontalPodAutoscaler) (schema.GroupKind, string) {
	ref := a.Spec.ScaleTargetRef
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), strings.TrimSuffix(ref.Name, turnedAwaySuffix)
}

// turnedAway returns what has the autoscalers of a workload scale nothing: with Pods of two versions they would take the one for the other.
func turnedAway(o Objects) []Change {
	return retargeted(o, "have it scale nothing during the release", func(name string) string {
		return strings.TrimSuffix(name, turnedAwaySuffix) + turnedAwaySuffix
	})
}

// Autoscaled returns what has the autoscalers of a workload scale it again; none if they do. The workload may be gone.
func Autoscaled(o Objects) []Change {
	return retargeted(o, "have it scale the workload again", func(name string) string { return strings.TrimSuffix(name, turnedAwaySuffix) })
}

func retargeted(o Objects, what string, to func(name string) string) []Change {
	var out []Change
	for _, a := range o.Autoscalers {
		name := to(a.Spec.ScaleTargetRef.Name)
		if name == a.Spec.ScaleTargetRef.Name {
			continue
		}
		after := a.DeepCopy()
		after.Spec.ScaleTargetRef.Name = name
		out = append(out, Change{Before: a, After: after, What: what})
	}
	return out
}
