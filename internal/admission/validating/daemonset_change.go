package validating

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// daemonSetChange is a DaemonSet to be written.
type daemonSetChange struct {
	DaemonSetOptions
	write[v1beta1.DaemonSet]
}

func (c daemonSetChange) workload() workload {
	w := workload{kind: "DaemonSet", selector: c.new.Spec.Selector, template: &c.new.Spec.Template}
	if c.old != nil {
		w.oldTemplate = &c.old.Spec.Template
	}
	return w
}

// validate returns what is wrong with the change.
func (c daemonSetChange) validate(ctx context.Context) findings {
	spec := field.NewPath("spec")
	var found findings
	found.add(c.workload().checkSelector(spec))
	found.add(c.canary(spec.Child("updateStrategy", "rollingUpdate", "selector")))
	if c.templateChanged() {
		found.join(c.workload().checkTemplate(ctx, c.Templates, c.namespace, c.template()))
	}
	if len(found.errors) == 0 {
		found.warnings = append(found.warnings, c.warnings()...)
	}
	return found
}

func (c daemonSetChange) templateChanged() bool {
	return c.old == nil || !equality.Semantic.DeepEqual(c.old.Spec.Template, c.new.Spec.Template)
}

// canary checks the selector of nodes, where the strategy is new. The schema can't: CEL would cost too much on lists of any length.
func (c daemonSetChange) canary(path *field.Path) field.ErrorList {
	strategy := &c.new.Spec.UpdateStrategy
	if strategy.RollingUpdate == nil || c.old != nil && equality.Semantic.DeepEqual(&c.old.Spec.UpdateStrategy, strategy) {
		return nil
	}
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
	if c.old == nil || c.templateChanged() || !equality.Semantic.DeepEqual(c.old.Spec.Lifecycle, spec.Lifecycle) {
		out = append(out, c.workload().hookWarnings(spec.Lifecycle)...)
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
	spec := &c.new.Spec.Template.Spec
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
