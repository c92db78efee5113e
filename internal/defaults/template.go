package defaults

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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

// volume fills in the defaults of one volume. One without any source is an empty folder.
func volume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	files(v)
	devices(v)
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		fill(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits)
		roundUp(claim.Resources.Requests)
	}
}

// files are the volumes that show things of the cluster or of the node.
func files(v *corev1.Volume) {
	if v.HostPath != nil {
		fill(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		fill(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		fill(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		fill(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		downward(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	fill(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if source.DownwardAPI != nil {
			downward(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			fill(&source.ServiceAccountToken.ExpirationSeconds, tokenExpirationSeconds)
		}
	}
}

func downward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fieldRef(items[i].FieldRef)
	}
}

// devices are the volumes of storage systems.
func devices(v *corev1.Volume) {
	if v.ISCSI != nil {
		fillText(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		fillText(&v.RBD.RBDPool, "rbd")
		fillText(&v.RBD.RadosUser, "admin")
		fillText(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		fill(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		fill(&v.AzureDisk.FSType, "ext4")
		fill(&v.AzureDisk.ReadOnly, false)
		fill(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		fillText(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fillText(&v.ScaleIO.FSType, "xfs")
	}
}

// Equivalent reports whether the API server makes the same Pods of both templates: whether they differ in no more than in how many defaults
// they spell out. A workload of Kubernetes spells all of them out. It may fill in both.
func Equivalent(a, b *corev1.PodTemplateSpec) bool {
	asKubernetes(a)
	asKubernetes(b)
	return equality.Semantic.DeepEqual(a, b)
}

// asKubernetes fills in what Kubernetes fills in in the templates of its own workloads.
func asKubernetes(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	for i := range spec.Containers {
		fillText(&spec.Containers[i].ImagePullPolicy, pullPolicy(spec.Containers[i].Image))
	}
	// The old name of the field is written along with the new one.
	fillText(&spec.DeprecatedServiceAccount, spec.ServiceAccountName)
	fillText(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	PodTemplate(template, Options{})
}
