package validating

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
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
			return daemonSetChange{o, w, daemonSetWorkload(w.new, w.old)}.validate(ctx), nil
		},
		ineffective: daemonSetSpelling,
	}
	if o.DeletionProtection { // a node that wants a Pod counts for one
		k.pods = func(set *v1beta1.DaemonSet) int32 { return set.Status.DesiredNumberScheduled }
	}
	return k.handler()
}

// daemonSetChange is a DaemonSet to be written.
type daemonSetChange struct {
	DaemonSetOptions
	write[v1beta1.DaemonSet]
	*workload
}

func daemonSetWorkload(set, old *v1beta1.DaemonSet) *workload {
	if set == nil {
		return nil
	}
	spec := &set.Spec
	return &workload{"DaemonSet", spec.Selector, &spec.Template, nil, spec.Lifecycle, daemonSetWorkload(old, nil)}
}

// validate returns what the schema can't find wrong with the change.
func (c daemonSetChange) validate(ctx context.Context) findings {
	found := c.check(ctx, c.Templates, c.namespace, c.rawTemplate())
	found.add(c.canary())
	if len(found.errors) == 0 {
		found.warnings = append(found.warnings, c.warnings()...)
	}
	return found
}

// canary checks the selector of nodes, where the strategy is new. The schema can't: CEL would cost too much on lists of any length.
func (c daemonSetChange) canary() field.ErrorList {
	strategy := &c.new.Spec.UpdateStrategy
	if strategy.RollingUpdate == nil || c.old != nil && equality.Semantic.DeepEqual(&c.old.Spec.UpdateStrategy, strategy) {
		return nil
	}
	path := field.NewPath("spec", "updateStrategy", "rollingUpdate", "selector")
	return metavalidation.ValidateLabelSelector(strategy.RollingUpdate.Selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

// isZero reports whether a valid number or percentage is 0 of anything.
func isZero(value *intstr.IntOrString) bool {
	n, err := budget.Scaled(value, 100, budget.Up)
	return err == nil && n == 0
}

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c daemonSetChange) warnings() []string {
	spec := &c.new.Spec
	var out []string
	if c.templateChanged() || !equality.Semantic.DeepEqual(c.old.Spec.Lifecycle, spec.Lifecycle) {
		out = append(out, c.hookWarnings()...)
		if spec.Lifecycle != nil && spec.Lifecycle.PreNormal != nil {
			out = append(out, "spec.lifecycle.preNormal has no effect on a DaemonSet")
		}
	}
	rolling := spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return out
	}
	if spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType {
		return append(out, "spec.updateStrategy.rollingUpdate has no effect with type OnDelete")
	}
	if ports := c.hostPorts(); ports != "" && !isZero(rolling.MaxSurge) {
		out = append(out, fmt.Sprintf("maxSurge %s with host port %s: a new Pod can't run beside the old one on its node, so that the update would wait for ever; use maxUnavailable", rolling.MaxSurge, ports))
	}
	if c.old != nil && c.templateChanged() {
		total := int(c.old.Status.DesiredNumberScheduled)
		if kept, err := budget.Scaled(rolling.Partition, total, budget.Down); err == nil && total > 0 && kept >= total {
			out = append(out, nothingMoves("node", rolling.Partition, total))
		}
	}
	return out
}

// hostPorts returns the first port of the node that the Pods take, in words; empty when they take none.
func (c daemonSetChange) hostPorts() string {
	spec := &c.template.Spec
	for i := range spec.Containers {
		for _, port := range spec.Containers[i].Ports {
			switch {
			case port.HostPort != 0:
				return fmt.Sprint(port.HostPort)
			case spec.HostNetwork && port.ContainerPort != 0:
				return fmt.Sprint(port.ContainerPort)
			}
		}
	}
	return ""
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
