package inject

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/expression"
)

// environment returns a sidecar's variables: its own, the mark of an injected container, and those taken from the Pod whose names are free.
// Where one of its own refers to one taken from the Pod, as $(NAME), these come first, because a variable can refer only to earlier ones.
func environment(own, taken []corev1.EnvVar) []corev1.EnvVar {
	mark := corev1.EnvVar{Name: keys.SidecarInjectedEnv, Value: "true"}
	names := sets.New(mark.Name)
	for _, env := range own {
		names.Insert(env.Name)
	}
	var free []corev1.EnvVar
	for _, env := range taken {
		if !names.Has(env.Name) {
			names.Insert(env.Name)
			free = append(free, env)
		}
	}
	own = slices.DeleteFunc(own, func(env corev1.EnvVar) bool { return env.Name == mark.Name })
	if refersTo(own, free) {
		return slices.Concat(free, own, []corev1.EnvVar{mark})
	}
	return slices.Concat(own, []corev1.EnvVar{mark}, free)
}

func refersTo(own, others []corev1.EnvVar) bool {
	for _, env := range own {
		for _, name := range references(env.Value) {
			if slices.ContainsFunc(others, func(other corev1.EnvVar) bool { return other.Name == name }) {
				return true
			}
		}
	}
	return false
}

// reference matches $(NAME), and $$, which stands for a mere $.
var reference = regexp.MustCompile(`\$\$|\$\(([^()]+)\)`)

// references returns the names that a text refers to as $(NAME).
func references(text string) []string {
	if !strings.Contains(text, "$(") {
		return nil
	}
	var names []string
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		if match[1] != "" {
			names = append(names, match[1])
		}
	}
	return names
}

// transferred returns the variables that a sidecar copies from the Pod's own containers. Names and containers that are not there are passed
// over.
func (i *injection) transferred(from *v1beta1.SidecarContainer) ([]corev1.EnvVar, error) {
	var taken []corev1.EnvVar
	for _, transfer := range from.TransferEnv {
		source, err := i.sourceOf(transfer)
		if err != nil {
			return nil, err
		}
		if source == nil {
			continue
		}
		names := sets.New(transfer.EnvNames...)
		if transfer.EnvName != "" {
			names.Insert(transfer.EnvName)
		}
		for _, name := range sets.List(names) {
			taken = append(taken, variable(source, name)...)
		}
	}
	return taken, nil
}

// variable returns a variable of a container; the last one of that name, which is the one that counts.
func variable(c *corev1.Container, name string) []corev1.EnvVar {
	for j := range slices.Backward(c.Env) {
		if c.Env[j].Name == name {
			return []corev1.EnvVar{*c.Env[j].DeepCopy()}
		}
	}
	return nil
}

// sourceOf returns the container of the Pod that a transfer copies from, or nil.
func (i *injection) sourceOf(transfer v1beta1.TransferEnvVar) (*corev1.Container, error) {
	name := transfer.SourceContainerName
	if from := transfer.SourceContainerNameFrom; from != nil && from.FieldRef != nil {
		var err error
		if name, err = i.field(from.FieldRef.FieldPath); err != nil {
			return nil, err
		}
	}
	for _, c := range i.own {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, nil
}

// fieldPath matches a label or an annotation by its key.
var fieldPath = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// field returns the value of a label or annotation of the Pod; nothing where it has none.
func (i *injection) field(path string) (string, error) {
	match := fieldPath.FindStringSubmatch(path)
	if match == nil {
		return "", fmt.Errorf("sourceContainerNameFrom: %s is not metadata.labels['<key>'] or metadata.annotations['<key>']", path)
	}
	if match[1] == "labels" {
		return i.pod.Labels[match[2]], nil
	}
	return i.pod.Annotations[match[2]], nil
}

// share mounts in a sidecar what the Pod's own containers mount, where the sidecar itself has nothing yet, and returns the variables that
// the mounts' paths refer to.
func (i *injection) share(from *v1beta1.SidecarContainer, c *corev1.Container) []corev1.EnvVar {
	taken := sets.New[string]()
	for _, mount := range c.VolumeMounts {
		taken.Insert(path.Clean(mount.MountPath))
	}
	for _, device := range c.VolumeDevices {
		taken.Insert(path.Clean(device.DevicePath))
	}
	// free takes a path, if nothing is there.
	free := func(at string) bool {
		at = path.Clean(at)
		if taken.Has(at) {
			return false
		}
		taken.Insert(at)
		return true
	}
	var needed []corev1.EnvVar
	if from.ShareVolumePolicy.Type == v1beta1.ShareVolumePolicyEnabled {
		for _, own := range i.own {
			for j := range own.VolumeMounts {
				mount := &own.VolumeMounts[j]
				if !free(mount.MountPath) {
					continue
				}
				c.VolumeMounts = append(c.VolumeMounts, *mount.DeepCopy())
				for _, name := range references(mount.SubPathExpr) {
					needed = append(needed, variable(own, name)...)
				}
			}
		}
	}
	if policy := from.ShareVolumeDevicePolicy; policy != nil && policy.Type == v1beta1.ShareVolumePolicyEnabled {
		for _, own := range i.own {
			for _, device := range own.VolumeDevices {
				if free(device.DevicePath) {
					c.VolumeDevices = append(c.VolumeDevices, device)
				}
			}
		}
	}
	return needed
}

// policy computes the resources of one container.
type policy struct {
	targets *regexp.Regexp
	sum     bool
	// limits and requests are the expressions, by resource.
	limits, requests map[expression.Variable]*expression.Expression
}

func compilePolicy(p *v1beta1.ResourcesPolicy) (policy, error) {
	pattern := p.TargetContainersNameRegex
	if pattern == "" {
		pattern = ".*"
	}
	targets, err := regexp.Compile(pattern)
	if err != nil {
		return policy{}, fmt.Errorf("reading targetContainersNameRegex: %w", err)
	}
	out := policy{targets: targets, sum: p.TargetContainersMode == v1beta1.TargetContainersModeSum}
	if limits := p.ResourcesExpr.Limits; limits != nil {
		if out.limits, err = compileExpressions(limits.CPU, limits.Memory); err != nil {
			return policy{}, fmt.Errorf("limits: %w", err)
		}
	}
	if requests := p.ResourcesExpr.Requests; requests != nil {
		if out.requests, err = compileExpressions(requests.CPU, requests.Memory); err != nil {
			return policy{}, fmt.Errorf("requests: %w", err)
		}
	}
	return out, nil
}

func compileExpressions(cpu, memory string) (map[expression.Variable]*expression.Expression, error) {
	out := map[expression.Variable]*expression.Expression{}
	for variable, text := range map[expression.Variable]string{expression.CPU: cpu, expression.Memory: memory} {
		if text == "" {
			continue
		}
		compiled, err := expression.Compile(text, variable)
		if err != nil {
			return nil, err
		}
		out[variable] = compiled
	}
	return out, nil
}

// targets returns the containers of the Pod that a policy computes from: its native sidecars and its containers of the names that the
// policy asks for, without those of any SidecarSet.
func (i *injection) targets(p policy) []*corev1.Container {
	var targets []*corev1.Container
	add := func(c *corev1.Container) {
		if !i.isSidecar(c.Name) && p.targets.MatchString(c.Name) {
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
			total, limited := p.total(from, name, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
			if limited == len(from) || !e.Uses() {
				if err := set(&c.Resources.Limits, variable, e, total); err != nil {
					return nil, fmt.Errorf("limit of %s: %w", variable, err)
				}
			}
		}
		if e := p.requests[variable]; e != nil {
			total, _ := p.total(from, name, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
			if err := set(&c.Resources.Requests, variable, e, total); err != nil {
				return nil, fmt.Errorf("request of %s: %w", variable, err)
			}
		}
		limit, hasLimit := c.Resources.Limits[name]
		if request, ok := c.Resources.Requests[name]; ok && hasLimit && request.Cmp(limit) > 0 {
			c.Resources.Requests[name] = limit.DeepCopy()
			notices = append(notices, fmt.Sprintf("its computed request of %s %s is above the limit, and becomes %s",
				request.String(), variable, limit.String()))
		}
	}
	return notices, nil
}

// total returns the sum, or the largest, of what the containers have of a resource, in thousandths, and how many of them have any.
func (p policy) total(
	from []*corev1.Container, name corev1.ResourceName, list func(*corev1.Container) corev1.ResourceList,
) (total int64, having int) {
	for _, c := range from {
		quantity, ok := list(c)[name]
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
