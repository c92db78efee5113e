package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
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
	for i := range spec.PatchPodMetadata {
		fillText(&spec.PatchPodMetadata[i].PatchPolicy, v1beta1.SidecarSetRetainPatchPolicy)
	}
	if revision := spec.InjectionStrategy.Revision; revision != nil {
		fillText(&revision.Policy, v1beta1.AlwaysSidecarSetInjectRevisionPolicy)
	}
	strategy := &spec.UpdateStrategy
	fillText(&strategy.Type, v1beta1.RollingUpdateSidecarSetStrategyType)
	fill(&strategy.Partition, intstr.FromInt32(0))
	fill(&strategy.MaxUnavailable, intstr.FromInt32(1))
	return sidecar.Stamp(set)
}

// SidecarSetFirstSpelling copies the fields of the first releases to those that have taken their place: where one of them was changed by
// this very request and its successor was not, or where the object is new and the successor is not set. Old is what set replaces, nil for a
// new one.
func SidecarSetFirstSpelling(set, old *v1alpha1.SidecarSet) {
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
