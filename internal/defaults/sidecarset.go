package defaults

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// SidecarSet fills in the defaults of set, and notes the hashes of its containers.
func SidecarSet(set *v1beta1.SidecarSet) error {
	spec := &set.Spec
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	sidecars(spec.InitContainers, v1beta1.AfterAppContainerType)
	sidecars(spec.Containers, v1beta1.BeforeAppContainerType)
	for i := range spec.Volumes {
		volume(&spec.Volumes[i])
	}
	patchPodMetadata(spec.PatchPodMetadata)
	injection(&spec.InjectionStrategy)
	sidecarUpdate(&spec.UpdateStrategy)
	return sidecar.Stamp(set)
}

// SidecarSetV1alpha1 does for the older version what SidecarSet does. It also copies the fields of the first releases to those that have taken
// their place: where one of them was changed by this very request and its successor was not, or where the object is new and the successor is
// not set. Old is what set replaces, nil for a new one.
func SidecarSetV1alpha1(set, old *v1alpha1.SidecarSet) error {
	firstSpelling(set, old)
	spec := &set.Spec
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	sidecars(spec.InitContainers, v1beta1.AfterAppContainerType)
	sidecars(spec.Containers, v1beta1.BeforeAppContainerType)
	for i := range spec.Volumes {
		volume(&spec.Volumes[i])
	}
	patchPodMetadata(spec.PatchPodMetadata)
	injection(&spec.InjectionStrategy)
	sidecarUpdate(&spec.UpdateStrategy)
	hashes, err := sidecar.HashesOf(&v1beta1.SidecarSetSpec{Containers: spec.Containers, InitContainers: spec.InitContainers})
	if err != nil {
		return err
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[keys.SidecarSetHash], set.Annotations[keys.SidecarSetHashWithoutImage] = hashes.Full, hashes.WithoutImage
	return nil
}

func firstSpelling(set, old *v1alpha1.SidecarSet) {
	limit, paused := FirstMaxUnavailable(set), set.Spec.Paused
	now := &set.Spec.UpdateStrategy
	if old == nil {
		if now.MaxUnavailable == nil {
			now.MaxUnavailable = limit
		}
		if !now.Paused && paused != nil {
			now.Paused = *paused
		}
		return
	}
	before := &old.Spec.UpdateStrategy
	sameSuccessor := now.MaxUnavailable == nil || equality.Semantic.DeepEqual(now.MaxUnavailable, before.MaxUnavailable)
	if limit != nil && sameSuccessor && !equality.Semantic.DeepEqual(limit, FirstMaxUnavailable(old)) {
		now.MaxUnavailable = limit
	}
	if paused != nil && now.Paused == before.Paused && !equality.Semantic.DeepEqual(paused, old.Spec.Paused) {
		now.Paused = *paused
	}
}

// FirstMaxUnavailable returns maxUnavailable as the first releases spelled it, or nil.
func FirstMaxUnavailable(set *v1alpha1.SidecarSet) *intstr.IntOrString {
	if set.Spec.Strategy == nil || set.Spec.Strategy.RollingUpdate == nil {
		return nil
	}
	return set.Spec.Strategy.RollingUpdate.MaxUnavailable
}

// sidecars fills in the defaults of containers.
//
// Wire: startup probes, probes by gRPC and quantities stay as they are. They have never been filled in, and the hashes depend on that.
func sidecars(containers []v1beta1.SidecarContainer, place v1beta1.PodInjectPolicyType) {
	for i := range containers {
		c := &containers[i]
		fillText(&c.PodInjectPolicy, place)
		fillText(&c.UpgradeStrategy.UpgradeType, v1beta1.SidecarContainerColdUpgrade)
		fillText(&c.ShareVolumePolicy.Type, v1beta1.ShareVolumePolicyDisabled)
		for j := range c.TransferEnv {
			if from := c.TransferEnv[j].SourceContainerNameFrom; from != nil {
				fieldRef(from.FieldRef)
			}
		}
		if c.ResourcesPolicy != nil {
			fillText(&c.ResourcesPolicy.TargetContainersNameRegex, ".*")
		}
		fillText(&c.ImagePullPolicy, pullPolicy(c.Image))
		asWritten := c.DeepCopy()
		container(&c.Container)
		c.StartupProbe, c.Resources = asWritten.StartupProbe, asWritten.Resources
		keepGRPC(c.LivenessProbe, asWritten.LivenessProbe)
		keepGRPC(c.ReadinessProbe, asWritten.ReadinessProbe)
	}
}

func keepGRPC(p, asWritten *corev1.Probe) {
	if p != nil {
		p.GRPC = asWritten.GRPC
	}
}

func patchPodMetadata(patches []v1beta1.SidecarSetPatchPodMetadata) {
	for i := range patches {
		fillText(&patches[i].PatchPolicy, v1beta1.SidecarSetRetainPatchPolicy)
	}
}

func injection(s *v1beta1.SidecarSetInjectionStrategy) {
	if s.Revision != nil {
		fillText(&s.Revision.Policy, v1beta1.AlwaysSidecarSetInjectRevisionPolicy)
	}
}

func sidecarUpdate(s *v1beta1.SidecarSetUpdateStrategy) {
	fillText(&s.Type, v1beta1.RollingUpdateSidecarSetStrategyType)
	fill(&s.Partition, intstr.FromInt32(0))
	fill(&s.MaxUnavailable, intstr.FromInt32(1))
}
