// Package ephemeral is about ephemeral containers that a job adds to Pods: which Pods can take them, which job they are of, and what has
// become of them.
//
// A variable in the containers, which nobody can change afterwards, names the job that added them. So a job never adds them twice, whatever
// its controller has forgotten.
package ephemeral

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// Jobs returns the UIDs of the jobs that have added containers to the Pod, each once.
func Jobs(p *corev1.Pod) []types.UID {
	var out []types.UID
	for i := range p.Spec.EphemeralContainers {
		if job := jobOf(&p.Spec.EphemeralContainers[i]); job != "" && !slices.Contains(out, job) {
			out = append(out, job)
		}
	}
	return out
}

// Has reports whether the job has added containers to the Pod.
func Has(p *corev1.Pod, job types.UID) bool { return slices.Contains(Jobs(p), job) }

func jobOf(c *corev1.EphemeralContainer) types.UID {
	for i := range c.Env {
		if c.Env[i].Name == keys.EphemeralJobID {
			return types.UID(c.Env[i].Value)
		}
	}
	return ""
}

// Into returns a copy of the Pod with the containers added, each marked as the job's.
func Into(p *corev1.Pod, containers []corev1.EphemeralContainer, job types.UID) *corev1.Pod {
	out := p.DeepCopy()
	for i := range containers {
		c := containers[i].DeepCopy()
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == keys.EphemeralJobID })
		c.Env = append(c.Env, corev1.EnvVar{Name: keys.EphemeralJobID, Value: string(job)})
		out.Spec.EphemeralContainers = append(out.Spec.EphemeralContainers, *c)
	}
	return out
}

// Unfit says why the Pod can't take the containers; empty when it can, as far as can be told. It spares writes that the API server would
// refuse.
func Unfit(p *corev1.Pod, containers []corev1.EphemeralContainer) string {
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return "it is a static Pod"
	}
	names := map[string]bool{}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			names[list[i].Name] = true
		}
	}
	for i := range containers {
		if target := containers[i].TargetContainerName; target != "" && !names[target] {
			return fmt.Sprintf("it has no container %s to target", target)
		}
	}
	for i := range p.Spec.EphemeralContainers {
		names[p.Spec.EphemeralContainers[i].Name] = true
	}
	for i := range containers {
		if names[containers[i].Name] {
			return fmt.Sprintf("it has a container %s already", containers[i].Name)
		}
	}
	return ""
}
