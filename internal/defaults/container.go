package defaults

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// pullPolicy returns the policy that Kubernetes gives to an image: an image without a tag, or with the tag latest, is always pulled.
func pullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent // an image that can't be read is refused later
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func container(c *corev1.Container) {
	fillText(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fillText(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	requirements(&c.Resources)
	for i := range c.Ports {
		fillText(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			fieldRef(from.FieldRef)
		}
	}
	probe(c.LivenessProbe)
	probe(c.ReadinessProbe)
	probe(c.StartupProbe)
	if c.Lifecycle != nil {
		lifecycleHandler(c.Lifecycle.PostStart)
		lifecycleHandler(c.Lifecycle.PreStop)
	}
}

func fieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		fillText(&ref.APIVersion, "v1")
	}
}

func probe(p *corev1.Probe) {
	if p == nil {
		return
	}
	fillNumber(&p.TimeoutSeconds, 1)
	fillNumber(&p.PeriodSeconds, 10)
	fillNumber(&p.SuccessThreshold, 1)
	fillNumber(&p.FailureThreshold, 3)
	httpGet(p.HTTPGet)
	if p.GRPC != nil {
		fill(&p.GRPC.Service, "")
	}
}

func lifecycleHandler(h *corev1.LifecycleHandler) {
	if h != nil {
		httpGet(h.HTTPGet)
	}
}

func httpGet(action *corev1.HTTPGetAction) {
	if action != nil {
		fillText(&action.Path, "/")
		fillText(&action.Scheme, corev1.URISchemeHTTP)
	}
}

func fillNumber(field *int32, value int32) {
	if *field == 0 {
		*field = value
	}
}
