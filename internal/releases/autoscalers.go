package releases

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// ReadAutoscalers reads the HorizontalPodAutoscalers of a workload, which may be gone.
func ReadAutoscalers(ctx context.Context, r observe.Reader, namespace string, ref v1beta1.WorkloadReference, o *steer.Objects) error {
	var list autoscalingv2.HorizontalPodAutoscalerList
	all, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
	for _, a := range all {
		if kind, name := steer.TargetOf(a); kind == GroupKind(ref) && name == ref.Name {
			o.Autoscalers = append(o.Autoscalers, a)
		}
	}
	return err
}

// Autoscalers returns the events of HorizontalPodAutoscalers, from the first owner on for which it matters what they do.
func (f Finder) Autoscalers(matters func(owner client.Object) bool) loop.Watch {
	watch := loop.Affected(&autoscalingv2.HorizontalPodAutoscaler{},
		func(ctx context.Context, before, after *autoscalingv2.HorizontalPodAutoscaler) ([]types.NamespacedName, error) {
			if after == nil || before != nil && before.Spec.ScaleTargetRef == after.Spec.ScaleTargetRef {
				return nil, nil
			}
			kind, name := steer.TargetOf(after)
			return f.keys(ctx, after.Namespace, kind, name)
		})
	watch.For = matters
	return watch
}
