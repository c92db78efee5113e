package probe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Wanted returns all that is asked of the Pods of a node, sorted by Pod.
func (m Markers) Wanted(pods []*corev1.Pod) []v1alpha1.PodProbe {
	var out []v1alpha1.PodProbe
	for _, p := range pods {
		if !IsProbed(p) {
			continue
		}
		asked := v1alpha1.PodProbe{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID), IP: p.Status.PodIP}
		questions, _ := m.Of(p)
		for _, q := range questions {
			if probe, ok := resolve(q.Probe.Probe, pod.LastingContainer(p, q.Probe.ContainerName).Ports); ok {
				asked.Probes = append(asked.Probes, v1alpha1.ContainerProbe{Name: q.Name(), ContainerName: q.Probe.ContainerName, Probe: probe})
			}
		}
		if len(asked.Probes) > 0 {
			out = append(out, asked)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// resolve replaces the names of ports by their numbers. It is not ok when the container has no port of the name.
func resolve(probe v1alpha1.ContainerProbeSpec, ports []corev1.ContainerPort) (out v1alpha1.ContainerProbeSpec, ok bool) {
	out = *probe.DeepCopy()
	for _, port := range portsOf(&out.Probe) {
		if port.Type == intstr.Int {
			continue
		}
		i := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
		if i < 0 {
			return out, false
		}
		*port = intstr.FromInt32(ports[i].ContainerPort)
	}
	return out, true
}

func portsOf(p *corev1.Probe) []*intstr.IntOrString {
	switch {
	case p.HTTPGet != nil:
		return []*intstr.IntOrString{&p.HTTPGet.Port}
	case p.TCPSocket != nil:
		return []*intstr.IntOrString{&p.TCPSocket.Port}
	default:
		return nil
	}
}
