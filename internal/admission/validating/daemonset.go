package validating

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// DaemonSet returns the handler that validates DaemonSets of both versions.
func DaemonSet(o Options) admission.Handler {
	return kind[v1beta1.DaemonSet, *v1beta1.DaemonSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.DaemonSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.DaemonSet]) (findings, error) {
			return daemonSetChange{o, w, daemonSetWorkload(w.new, w.old)}.validate(ctx), nil
		},
		ineffective: daemonSetSpelling,
	}.handler()
}

// daemonSetChange is a DaemonSet to be written.
type daemonSetChange struct {
	Options
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
	strategy := &c.new.Spec.UpdateStrategy
	changed := c.old == nil || !equality.Semantic.DeepEqual(&c.old.Spec.UpdateStrategy, strategy)
	if changed && strategy.RollingUpdate != nil {
		found.selector(field.NewPath("spec", "updateStrategy", "rollingUpdate", "selector"), strategy.RollingUpdate.Selector)
	}
	if len(found.errors) == 0 {
		c.warnings(&found)
	}
	return found
}

// isZero reports whether a valid number or percentage is 0 of anything.
func isZero(value *intstr.IntOrString) bool {
	n, err := budget.Scaled(value, 100, budget.Up)
	return err == nil && n == 0
}

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c daemonSetChange) warnings(found *findings) {
	spec := &c.new.Spec
	if c.templateChanged() || !equality.Semantic.DeepEqual(c.old.Spec.Lifecycle, spec.Lifecycle) {
		c.hookWarnings(found)
		if spec.Lifecycle != nil && spec.Lifecycle.PreNormal != nil {
			found.warn("spec.lifecycle.preNormal has no effect on a DaemonSet")
		}
	}
	rolling := spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return
	}
	if spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType {
		found.warn("spec.updateStrategy.rollingUpdate has no effect with type OnDelete")
		return
	}
	if ports := c.hostPorts(); ports != "" && !isZero(rolling.MaxSurge) {
		found.warn("maxSurge %s with host port %s: a new Pod can't run beside the old one on its node, "+
			"so that the update would wait for ever; use maxUnavailable", rolling.MaxSurge, ports)
	}
	if c.old != nil && c.templateChanged() {
		total := int(c.old.Status.DesiredNumberScheduled)
		if kept, err := budget.Scaled(rolling.Partition, total, budget.Down); err == nil && total > 0 && kept >= total {
			found.nothingMoves("node", rolling.Partition, total)
		}
	}
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
func daemonSetSpelling(found *findings, w write[v1beta1.DaemonSet]) {
	text, there := w.new.Annotations[keys.ProgressiveCreatePod]
	switch {
	case !there || w.older && text == "false":
	case w.older:
		found.warn("metadata.annotations[%s]: %q has no effect: use \"true\"", keys.ProgressiveCreatePod, text)
	default:
		found.warn("metadata.annotations[%s] has no effect in v1beta1: use spec.scaleStrategy.partitionedScaling",
			keys.ProgressiveCreatePod)
	}
}
