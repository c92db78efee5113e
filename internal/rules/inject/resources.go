package inject

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/internal/rules/expression"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// targets returns the containers of the Pod that a policy computes from: its native sidecars and its containers of the names that the
// policy asks for, without those of any SidecarSet.
func (i *injection) targets(p policy, all []*Sidecars) []*corev1.Container {
	sidecars := sets.New[string]()
	for _, s := range all {
		for j := range s.set.Spec.InitContainers {
			sidecars.Insert(s.set.Spec.InitContainers[j].Name)
		}
		for j := range s.set.Spec.Containers {
			c := &s.set.Spec.Containers[j]
			sidecars.Insert(c.Name)
			if first, second := sidecar.Twins(c.Name); sidecar.IsHot(c) {
				sidecars.Insert(first, second)
			}
		}
	}
	var targets []*corev1.Container
	add := func(c *corev1.Container) {
		if !sidecars.Has(c.Name) && p.targets.MatchString(c.Name) {
			targets = append(targets, c)
		}
	}
	for j := range i.pod.Spec.InitContainers {
		if c := &i.pod.Spec.InitContainers[j]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for j := range i.pod.Spec.Containers {
		add(&i.pod.Spec.Containers[j])
	}
	return targets
}

// apply gives a sidecar the resources that the policy computes from the containers, and returns what the user should know of it.
func (p policy) apply(c *corev1.Container, from []*corev1.Container) (notices []string, err error) {
	if len(from) == 0 {
		return nil, fmt.Errorf("no containers match the regex pattern %q", p.targets)
	}
	c.Resources = corev1.ResourceRequirements{}
	for _, variable := range []expression.Variable{expression.CPU, expression.Memory} {
		name := corev1.ResourceName(variable)
		if e := p.limits[variable]; e != nil {
			total, limited := p.total(from, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits }, name)
			if limited == len(from) || !e.Uses() {
				if err := set(&c.Resources.Limits, variable, e, total); err != nil {
					return nil, fmt.Errorf("limit of %s: %w", variable, err)
				}
			}
		}
		if e := p.requests[variable]; e != nil {
			total, _ := p.total(from, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }, name)
			if err := set(&c.Resources.Requests, variable, e, total); err != nil {
				return nil, fmt.Errorf("request of %s: %w", variable, err)
			}
		}
		limit, hasLimit := c.Resources.Limits[name]
		if request, ok := c.Resources.Requests[name]; ok && hasLimit && request.Cmp(limit) > 0 {
			c.Resources.Requests[name] = limit.DeepCopy()
			notices = append(notices, fmt.Sprintf("its computed request of %s %s is above the limit, and becomes %s", request.String(), variable, limit.String()))
		}
	}
	return notices, nil
}

// total returns the sum, or the largest, of what the containers have of a resource, in thousandths, and how many of them have any.
func (p policy) total(from []*corev1.Container, of func(*corev1.Container) corev1.ResourceList, name corev1.ResourceName) (total int64, having int) {
	for _, c := range from {
		quantity, ok := of(c)[name]
		if !ok {
			continue
		}
		having++
		milli := quantity.MilliValue()
		switch {
		case !p.sum:
			total = max(total, milli)
		case total > math.MaxInt64-milli:
			total = math.MaxInt64
		default:
			total += milli
		}
	}
	return total, having
}

// set evaluates an expression; memory is rounded up to whole bytes.
func set(list *corev1.ResourceList, variable expression.Variable, e *expression.Expression, total int64) error {
	milli, err := e.At(total)
	if err != nil {
		return err
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	quantity := resource.NewMilliQuantity(milli, resource.DecimalSI)
	if variable == expression.Memory {
		bytes := milli / 1000
		if milli%1000 > 0 {
			bytes++
		}
		quantity = resource.NewQuantity(bytes, resource.BinarySI)
	}
	(*list)[corev1.ResourceName(variable)] = *quantity
	return nil
}
