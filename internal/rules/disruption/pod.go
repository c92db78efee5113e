package disruption

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Available reports whether a Pod counts as available: it runs, is ready, is not being deleted, no label says that it is unavailable, and
// it is what its spec says. The ledger is not looked at.
func Available(p *corev1.Pod) bool {
	return pod.IsActive(p) && pod.IsReady(p) && !IsMarked(p) && IsConsistent(p)
}

// IsMarked reports whether a label says that the Pod is unavailable, whatever its conditions are.
func IsMarked(p *corev1.Pod) bool {
	for label := range p.Labels {
		if strings.HasPrefix(label, keys.UnavailablePrefix) {
			return true
		}
	}
	return false
}

// IsConsistent reports whether a Pod runs what its spec says. From the moment that an update in place has changed the spec until the
// containers have followed, kubelets may still call it ready.
func IsConsistent(p *corev1.Pod) bool {
	for i := range p.Spec.Containers {
		if !inplace.RunsDigest(p, &p.Spec.Containers[i]) {
			return false
		}
	}
	return inplace.Progress(p, inplace.Options{}).Done && sidecar.Updating(p) == ""
}

// IsFree reports whether the Pod's annotations free it from every budget.
func IsFree(p *corev1.Pod) bool {
	free, err := strconv.ParseBool(p.Annotations[keys.NoProtect])
	return err == nil && free
}

// GoesWith reports whether a Pod goes with its namespace, which is being deleted. No namespace that is being deleted ever stays, so an
// older view of it is as good as a newer one; but one of the same name may have followed, whose Pods are younger.
func GoesWith(p *corev1.Pod, n *corev1.Namespace) bool {
	return n.DeletionTimestamp != nil && !n.DeletionTimestamp.Before(&p.CreationTimestamp)
}

// Related returns the name of the budget that guards the Pod, by its annotations; empty where none does.
func Related(annotations map[string]string) string {
	if name := annotations[keys.RelatedBudget]; name != "" {
		return name
	}
	return annotations[keys.RelatedBudgetOld]
}

// configSource is the annotation of Pods that a kubelet runs from somewhere else than the API server: static Pods are of "file" or "http".
const configSource = "kubernetes.io/config.source"

// OperationOf returns which operation an update of a Pod is for its budget; false if it is none, because neither the spec changes nor a
// label is added that marks the Pod as unavailable.
//
// Example: another image is UPDATE, and so is more memory for a container that restarts for it. More cpu for one that goes on running is
// RESIZE. Another annotation is nothing.
func OperationOf(before, after *corev1.Pod) (operation v1beta1.PubOperation, disruptive bool) {
	switch {
	case marksUnavailable(before, after):
		return v1beta1.PubUpdateOperation, true
	case equality.Semantic.DeepEqual(before.Spec, after.Spec):
		return "", false
	case onlyResizes(before, after):
		return v1beta1.PubResizeOperation, true
	default:
		return v1beta1.PubUpdateOperation, true
	}
}

// marksUnavailable reports whether a label is added that marks the Pod as unavailable.
func marksUnavailable(before, after *corev1.Pod) bool {
	for key := range after.Labels {
		if _, had := before.Labels[key]; !had && strings.HasPrefix(key, keys.UnavailablePrefix) {
			return true
		}
	}
	return false
}

// onlyResizes reports whether nothing but cpu and memory of containers changes, without a restart.
func onlyResizes(before, after *corev1.Pod) bool {
	if isStatic(before) || len(before.Spec.Containers) != len(after.Spec.Containers) || qosOf(before) != qosOf(after) {
		return false
	}
	rest := after.Spec.DeepCopy()
	for i := range rest.Containers {
		was, is := &before.Spec.Containers[i], &after.Spec.Containers[i]
		if !resizesFreely(was, is) {
			return false
		}
		rest.Containers[i].Resources = was.Resources
	}
	return equality.Semantic.DeepEqual(before.Spec, *rest)
}

func isStatic(p *corev1.Pod) bool {
	source, ok := p.Annotations[configSource]
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || ok && source != "api"
}

// resizesFreely reports whether the resources of a container differ in nothing but cpu and memory that it takes without a restart.
func resizesFreely(before, after *corev1.Container) bool {
	if !equality.Semantic.DeepEqual(before.Resources.Claims, after.Resources.Claims) {
		return false
	}
	for _, lists := range [][2]corev1.ResourceList{
		{before.Resources.Requests, after.Resources.Requests}, {before.Resources.Limits, after.Resources.Limits},
	} {
		for _, name := range differing(lists[0], lists[1]) {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory || restartsFor(before, name) {
				return false
			}
		}
	}
	return true
}

func differing(a, b corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func restartsFor(c *corev1.Container, resource corev1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == resource {
			return cmp.Or(p.RestartPolicy, corev1.NotRequired) != corev1.NotRequired
		}
	}
	return false
}

// qosOf returns the quality of service that the resources of a Pod's containers make: with cpu and memory guaranteed to all of them, best
// effort without any said, burstable else.
func qosOf(p *corev1.Pod) corev1.PodQOSClass {
	said, guaranteed := false, true
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := r.Requests[name], r.Limits[name]
				said = said || !request.IsZero() || !limit.IsZero()
				// A request that is left out is as large as the limit.
				guaranteed = guaranteed && !limit.IsZero() && (request.IsZero() || request.Cmp(limit) == 0)
			}
		}
	}
	switch {
	case !said:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}
