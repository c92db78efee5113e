package recreate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// defaultGrace is the grace of a Pod that gives none, in seconds.
const defaultGrace int64 = 30

// Fill completes a new request with what the Pod and its node are now, so that no later change of the Pod redirects it: who is meant, the hooks to
// run, and the containers that another identity will tell apart from their successors. The Pod has all containers that the request names.
func Fill(r *v1beta1.ContainerRecreateRequest, p *corev1.Pod, node *corev1.Node) {
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels[keys.RecreatePodUID] = string(p.UID)
	r.Labels[keys.RecreateNodeName] = p.Spec.NodeName
	r.Labels[keys.RecreateActive] = "true"
	if node.Labels[keys.NodeType] == keys.NodeTypeVirtual {
		r.Labels[keys.NodeType] = keys.NodeTypeVirtual
	}
	if r.Spec.Strategy == nil {
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	}
	if r.Spec.Strategy.FailurePolicy == "" {
		r.Spec.Strategy.FailurePolicy = v1beta1.ContainerRecreateRequestFailurePolicyFail
	}
	if r.Spec.Strategy.TerminationGracePeriodSeconds == nil {
		grace := defaultGrace
		if p.Spec.TerminationGracePeriodSeconds != nil {
			grace = *p.Spec.TerminationGracePeriodSeconds
		}
		r.Spec.Strategy.TerminationGracePeriodSeconds = &grace
	}
	for i := range r.Spec.Containers {
		c := &r.Spec.Containers[i]
		container, status := pod.LastingContainer(p, c.Name), pod.LastingStatus(p, c.Name)
		if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
			c.PreStop = container.Lifecycle.PreStop.DeepCopy()
			if c.PreStop.HTTPGet != nil {
				c.Ports = append([]corev1.ContainerPort(nil), container.Ports...)
			}
		}
		c.StatusContext = &v1beta1.ContainerRecreateRequestContainerContext{
			ContainerID: status.ContainerID, RestartCount: status.RestartCount,
		}
	}
}
