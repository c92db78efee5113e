package validating

import (
	"context"
	"fmt"
	"slices"

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
		w.oldSelector = c.old.Spec.Selector
	}
	return w
}

// validate returns what is wrong with the change.
func (c daemonSetChange) validate(ctx context.Context) findings {
	spec := field.NewPath("spec")
	var found findings
	found.add(c.surging())
	found.add(c.numbers(spec))
	found.add(c.workload().checkSelector(spec))
	found.add(c.strategy(spec.Child("updateStrategy")))
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

func (c daemonSetChange) numbers(path *field.Path) field.ErrorList {
	spec := &c.new.Spec
	errs := append(notNegative(&spec.MinReadySeconds, path.Child("minReadySeconds")), notNegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if burst := spec.BurstReplicas; burst != nil {
		at := path.Child("burstReplicas")
		if _, err := budget.Scaled(burst, 1, budget.Up); err != nil {
			errs = append(errs, field.Invalid(at, burst, err.Error()))
		} else if isZero(burst) {
			errs = append(errs, field.Invalid(at, burst, "must be greater than 0: no Pod could ever be created"))
		}
	}
	return errs
}

func (c daemonSetChange) strategy(path *field.Path) field.ErrorList {
	strategy := &c.new.Spec.UpdateStrategy
	types := []v1beta1.DaemonSetUpdateStrategyType{v1beta1.RollingUpdateDaemonSetStrategyType, v1beta1.OnDeleteDaemonSetStrategyType}
	if !slices.Contains(types, strategy.Type) {
		return field.ErrorList{field.NotSupported(path.Child("type"), strategy.Type, types)}
	}
	rolling := strategy.RollingUpdate
	path = path.Child("rollingUpdate")
	switch {
	case strategy.Type == v1beta1.OnDeleteDaemonSetStrategyType:
		return nil
	case rolling == nil:
		return field.ErrorList{field.Required(path, "say how Pods are updated")}
	}
	var errs field.ErrorList
	ways := []v1beta1.RollingUpdateType{v1beta1.StandardRollingUpdateType, v1beta1.InPlaceRollingUpdateType}
	if !slices.Contains(ways, rolling.Type) {
		errs = append(errs, field.NotSupported(path.Child("rollingUpdateType"), rolling.Type, ways))
	}
	if rolling.Selector != nil {
		at := path.Child("selector")
		errs = append(errs, metavalidation.ValidateLabelSelector(rolling.Selector, metavalidation.LabelSelectorValidationOptions{}, at)...)
		if len(rolling.Selector.MatchLabels)+len(rolling.Selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(at, rolling.Selector, "an empty selector matches every node: leave it out to update all"))
		}
	}
	if details := rolling.InPlaceUpdateStrategy; details != nil {
		errs = append(errs, notNegative(&details.GracePeriodSeconds, path.Child("inPlaceUpdateStrategy", "gracePeriodSeconds"))...)
	}
	return append(errs, nodeLimits(rolling, path)...)
}

// nodeLimits checks each limit by itself, and whether the two that belong together let an update start and are not both in use.
func nodeLimits(rolling *v1beta1.RollingUpdateDaemonSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, limit := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"partition", rolling.Partition}, {"maxUnavailable", rolling.MaxUnavailable}, {"maxSurge", rolling.MaxSurge}} {
		share, err := budget.Scaled(limit.value, 100, budget.Up)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Child(limit.name), limit.value, err.Error()))
		case limit.value != nil && limit.value.Type == intstr.String && share > 100:
			errs = append(errs, field.Invalid(path.Child(limit.name), limit.value, "must not be greater than 100%"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	unavailable, surge := !isZero(rolling.MaxUnavailable), !isZero(rolling.MaxSurge)
	switch {
	case surge && rolling.Type == v1beta1.InPlaceRollingUpdateType:
		errs = append(errs, field.Required(path.Child("maxSurge"), "must be 0 for InPlaceIfPossible type"))
	case unavailable && surge:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), rolling.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
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
