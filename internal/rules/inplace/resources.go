package inplace

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// scalable returns the resources that can change in place.
func scalable() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// diffResources returns the requests and limits that change. Only values of CPU and memory may: the API server refuses the rest.
func diffResources(path string, old, new corev1.ResourceRequirements) (corev1.ResourceRequirements, *Refusal) {
	from, to := effective(old), effective(new)
	limits, refusal := diffList(path+"/limits", from.Limits, to.Limits)
	if refusal != nil {
		return corev1.ResourceRequirements{}, refusal
	}
	requests, refusal := diffList(path+"/requests", from.Requests, to.Requests)
	return corev1.ResourceRequirements{Limits: limits, Requests: requests}, refusal
}

// effective adds the requests that the API server takes from limits where a template has none.
func effective(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := *r.DeepCopy()
	for name, limit := range out.Limits {
		if _, ok := out.Requests[name]; !ok {
			if out.Requests == nil {
				out.Requests = corev1.ResourceList{}
			}
			out.Requests[name] = limit
		}
	}
	return out
}

func diffList(path string, old, new corev1.ResourceList) (corev1.ResourceList, *Refusal) {
	var changed corev1.ResourceList
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, ok := new[name]; !ok {
			return nil, &Refusal{Op: "remove", Path: path + "/" + string(name), Why: "a request or limit can't be removed in place"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(new)) {
		was, ok := old[name]
		is := new[name]
		switch {
		case !ok:
			return nil, &Refusal{Op: "add", Path: path + "/" + string(name), Why: "a request or limit can't be added in place"}
		case was.Cmp(is) == 0:
		case !slices.Contains(scalable(), name):
			return nil, &Refusal{Op: "replace", Path: path + "/" + string(name), Why: "only cpu and memory can be resized in place"}
		default:
			if changed == nil {
				changed = corev1.ResourceList{}
			}
			changed[name] = is
		}
	}
	return changed, nil
}

// qosClass returns the quality of service class of a Pod with this spec. Resources of the Pod as a whole, where it has any, decide alone; a
// value of zero counts as none.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	all := []corev1.ResourceRequirements{}
	if spec.Resources != nil {
		all = append(all, effective(*spec.Resources))
	} else {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				all = append(all, effective(containers[i].Resources))
			}
		}
	}
	guaranteed, anything := true, false
	for _, r := range all {
		for _, name := range scalable() {
			limit, request := r.Limits[name], r.Requests[name]
			anything = anything || !limit.IsZero() || !request.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && limit.Cmp(request) == 0
		}
	}
	switch {
	case !anything:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

// restartsForResize reports whether the container asks to be restarted when one of the changed resources is resized.
func restartsForResize(container *corev1.Container, changed corev1.ResourceRequirements) bool {
	return slices.ContainsFunc(container.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		_, limit := changed.Limits[p.ResourceName]
		_, request := changed.Requests[p.ResourceName]
		return p.RestartPolicy == corev1.RestartContainer && (limit || request)
	})
}

// resizeProgress evaluates whether a container has the CPU and memory of its spec.
func resizeProgress(p *corev1.Pod, name string) Verdict {
	container, status := pod.Container(p, name), pod.ContainerStatus(p, name)
	if container == nil {
		return Verdict{Done: true}
	}
	var actual corev1.ResourceRequirements
	if status != nil && status.Resources != nil {
		actual = *status.Resources
	}
	if !sameScalable(container.Resources.Limits, actual.Limits) || !sameScalable(container.Resources.Requests, actual.Requests) {
		return Verdict{Why: fmt.Sprintf("container %s is being resized%s", name, resizeProblem(p))}
	}
	return Verdict{Done: true}
}

// sameScalable compares those of the wanted values that can be resized.
func sameScalable(want, got corev1.ResourceList) bool {
	for _, name := range scalable() {
		value, ok := want[name]
		actual := got[name]
		if ok && value.Cmp(actual) != 0 {
			return false
		}
	}
	return true
}

// resizeProblem says what stands in the way of a resize, by the conditions that the kubelet keeps.
func resizeProblem(p *corev1.Pod) string {
	for _, t := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := pod.Condition(p, t); c != nil && c.Status == corev1.ConditionTrue && c.Reason != "" {
			return fmt.Sprintf(": %s (%s)", c.Reason, c.Message)
		}
	}
	return ""
}
