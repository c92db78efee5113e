package validating

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// DaemonSetOptions is what the validation of DaemonSets needs and heeds.
type DaemonSetOptions struct {
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
	// DeletionProtection heeds the label policy.kruise.io/delete-protection (gate ResourcesDeletionProtection).
	DeletionProtection bool
}

// DaemonSet returns the handler that validates DaemonSets of both versions.
func DaemonSet(o DaemonSetOptions) admission.Handler {
	k := kind[v1beta1.DaemonSet, *v1beta1.DaemonSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.DaemonSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.DaemonSet]) (findings, error) {
			return daemonSetChange{o, w}.validate(ctx), nil
		},
		ineffective: daemonSetSpelling,
	}
	if o.DeletionProtection { // a node that wants a Pod counts for one
		k.pods = func(set *v1beta1.DaemonSet) int32 { return set.Status.DesiredNumberScheduled }
	}
	return k.handler()
}

// daemonSetSpelling tells of the annotation that stands for a field in one version and has no effect as it is written.
func daemonSetSpelling(w write[v1beta1.DaemonSet]) []string {
	text, there := w.new.Annotations[keys.ProgressiveCreatePod]
	switch {
	case !there || w.older && text == "false":
		return nil
	case w.older:
		return []string{fmt.Sprintf("metadata.annotations[%s]: %q has no effect: use \"true\"", keys.ProgressiveCreatePod, text)}
	default:
		return []string{fmt.Sprintf("metadata.annotations[%s] has no effect in v1beta1: use spec.scaleStrategy.partitionedScaling", keys.ProgressiveCreatePod)}
	}
}
