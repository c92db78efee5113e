package inject

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/expression"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Sidecars is what one revision of a SidecarSet puts into Pods. It is made once and read for many Pods.
type Sidecars struct {
	set      *v1beta1.SidecarSet
	hashes   sidecar.Hashes
	revision string
	names    []string
	policies map[string]policy // by the name of the container
	volumes  []*corev1.Volume  // those that its containers mount or map
}

// Revision returns the name of the revision.
func (s *Sidecars) Revision() string { return s.revision }

// policy computes the resources of one container.
type policy struct {
	targets *regexp.Regexp
	sum     bool
	// limits and requests are the expressions, by resource.
	limits, requests map[expression.Variable]*expression.Expression
}

// Compile reads what a SidecarSet puts into Pods. The name of its revision follows from that, and is right before the revision is stored.
func Compile(set *v1beta1.SidecarSet) (*Sidecars, error) {
	name, err := sidecar.RevisionName(set)
	if err != nil {
		return nil, err
	}
	return CompileRevision(set, name)
}

// CompileRevision reads what a SidecarSet put into Pods at a revision, which set has been taken back to.
func CompileRevision(set *v1beta1.SidecarSet, revision string) (*Sidecars, error) {
	hashes, err := sidecar.HashesOf(&set.Spec)
	if err != nil {
		return nil, err
	}
	s := &Sidecars{set: set, hashes: hashes, revision: revision, names: sidecar.Names(&set.Spec), policies: map[string]policy{}, volumes: usedVolumes(&set.Spec)}
	for _, list := range [][]v1beta1.SidecarContainer{set.Spec.InitContainers, set.Spec.Containers} {
		for i := range list {
			if list[i].ResourcesPolicy == nil {
				continue
			}
			compiled, err := compilePolicy(list[i].ResourcesPolicy)
			if err != nil {
				return nil, fmt.Errorf("container %s: %w", list[i].Name, err)
			}
			s.policies[list[i].Name] = compiled
		}
	}
	return s, nil
}

// usedVolumes returns the volumes that sidecars mount or map.
func usedVolumes(spec *v1beta1.SidecarSetSpec) []*corev1.Volume {
	used := map[string]bool{}
	for _, list := range [][]v1beta1.SidecarContainer{spec.InitContainers, spec.Containers} {
		for j := range list {
			for _, mount := range list[j].VolumeMounts {
				used[mount.Name] = true
			}
			for _, device := range list[j].VolumeDevices {
				used[device.Name] = true
			}
		}
	}
	var volumes []*corev1.Volume
	for j := range spec.Volumes {
		if used[spec.Volumes[j].Name] {
			volumes = append(volumes, &spec.Volumes[j])
		}
	}
	return volumes
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

// Candidate is a SidecarSet that may apply to a Pod.
type Candidate struct {
	Set       *v1beta1.SidecarSet
	selection sidecar.Selection
	// updated are the Pods that the update strategy's selector lets have the present spec; all, if it has none.
	updated sidecar.Selection
	// Current is what its present spec puts into Pods.
	Current *Sidecars
	// Problem is why it can't be applied; nil mostly.
	Problem error
}

// NewCandidate reads a SidecarSet, once for each change of it.
func NewCandidate(set *v1beta1.SidecarSet) *Candidate {
	c := &Candidate{Set: set}
	if c.selection, c.Problem = sidecar.Select(set.Spec.Selector, set.Spec.NamespaceSelector); c.Problem != nil {
		return c
	}
	if selector := set.Spec.UpdateStrategy.Selector; selector != nil {
		if c.updated, c.Problem = sidecar.Select(selector, nil); c.Problem != nil {
			return c
		}
	}
	c.Current, c.Problem = Compile(set)
	return c
}

// base returns the name of the SidecarSet that this one is the canary of; nothing if it is none.
func (c *Candidate) base() string {
	if c.Set.Annotations[keys.SidecarSetCanary] != "true" {
		return ""
	}
	return c.Set.Annotations[keys.SidecarSetBase]
}
