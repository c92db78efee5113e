package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	gracePeriodSeconds     = int64(corev1.DefaultTerminationGracePeriodSeconds)
	tokenExpirationSeconds = int64(60 * 60)
)

// PodTemplate fills in the defaults of a Pod template: those of the Pod templates of Kubernetes itself, with one difference.
//
// Wire: containers that say nothing about pulling their image always pull it, whatever the tag. Init containers follow the Kubernetes rule.
//
// As in Kubernetes, a template gets no requests from limits, no enableServiceLinks and no host ports: the Pod will.
func PodTemplate(template *corev1.PodTemplateSpec, o Options) {
	spec := &template.Spec
	fillText(&spec.DNSPolicy, corev1.DNSClusterFirst)
	fillText(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	fillText(&spec.SchedulerName, corev1.DefaultSchedulerName)
	fill(&spec.SecurityContext, corev1.PodSecurityContext{})
	fill(&spec.TerminationGracePeriodSeconds, gracePeriodSeconds)
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		requirements(spec.Resources)
	}
	for i := range spec.Volumes {
		volume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		fillText(&spec.InitContainers[i].ImagePullPolicy, pullPolicy(spec.InitContainers[i].Image))
		container(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		fillText(&spec.Containers[i].ImagePullPolicy, corev1.PullAlways)
		container(&spec.Containers[i])
	}
	if spec.HostNetwork && o.HostNetworkHostPorts {
		hostPorts(spec.InitContainers)
		hostPorts(spec.Containers)
	}
}

func hostPorts(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			if port := &containers[i].Ports[j]; port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
		}
	}
}

func requirements(r *corev1.ResourceRequirements) {
	roundUp(r.Limits)
	roundUp(r.Requests)
}

// roundUp rounds quantities up to thousandths, the finest that the API keeps.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}
