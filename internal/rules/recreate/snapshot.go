package recreate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Snapshot returns what the Pod's status says of the containers that run anew, for daemons that do not see Pods.
//
// A container runs anew when it has another identity or more restarts than when the request was made. Where neither tells, for a request of older
// software, its start must not lie before the request; clocks of nodes differ, so that this is the last resort.
func Snapshot(r *v1beta1.ContainerRecreateRequest, p *corev1.Pod) []v1beta1.ContainerRecreateRequestSyncContainerStatus {
	var out []v1beta1.ContainerRecreateRequestSyncContainerStatus
	for _, c := range r.Spec.Containers {
		s := pod.LastingStatus(p, c.Name)
		if s == nil || s.State.Running == nil {
			continue
		}
		before := c.StatusContext
		anew := before != nil && (s.ContainerID != before.ContainerID || s.RestartCount > before.RestartCount)
		if anew || !s.State.Running.StartedAt.Before(&r.CreationTimestamp) {
			out = append(out, v1beta1.ContainerRecreateRequestSyncContainerStatus{
				Name: c.Name, Ready: s.Ready, RestartCount: s.RestartCount, ContainerID: s.ContainerID,
			})
		}
	}
	if len(out) == 0 {
		// A container that was seen and is between two lives for the moment: what was known stays known.
		return r.Status.ContainerStatusSnapshot
	}
	return out
}
