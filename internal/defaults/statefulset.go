package defaults

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// StatefulSet fills in the defaults of set. Old is what it replaces, nil for a new one: a template that has not changed stays as it is, so
// that no build of the manager starts a rollout by knowing other defaults than the one before.
func StatefulSet(set, old *v1beta1.StatefulSet, o Options) {
	spec := &set.Spec
	fill(&spec.Replicas, replicas)
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	fillText(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if old == nil {
		templates(&spec.Template, spec.VolumeClaimTemplates, nil, o)
	} else {
		templates(&spec.Template, spec.VolumeClaimTemplates, &before{&old.Spec.Template, old.Spec.VolumeClaimTemplates}, o)
	}
	claimModes(spec.VolumeClaimTemplates, o)
	if o.ClaimRetention {
		fill(&spec.PersistentVolumeClaimRetentionPolicy, v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
		fillText(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, v1beta1.RetainPersistentVolumeClaimRetentionPolicyType)
		fillText(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, v1beta1.RetainPersistentVolumeClaimRetentionPolicyType)
	}
	if o.ClaimResize {
		fillText(&spec.VolumeClaimUpdateStrategy.Type, v1beta1.OnDeleteVolumeClaimUpdateStrategyType)
	}
	fillText(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	fill(&spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
	rolling := spec.UpdateStrategy.RollingUpdate
	fill(&rolling.Partition, 0)
	fill(&rolling.MaxUnavailable, intstr.FromInt32(1))
	fill(&rolling.MinReadySeconds, 0)
	fillText(&rolling.PodUpdatePolicy, v1beta1.RecreatePodUpdateStrategyType)
	if old == nil && rolling.PodUpdatePolicy != v1beta1.RecreatePodUpdateStrategyType {
		// Later on it would be a change of the template, which recreates all Pods.
		inPlaceGate(&spec.Template.Spec)
	}
}

// claimModes fills in what Kubernetes' own StatefulSet has in its claim templates; revisions do not hold them.
func claimModes(claims []corev1.PersistentVolumeClaim, o Options) {
	if o.TemplateNoDefaults {
		return
	}
	for i := range claims {
		fill(&claims[i].Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
}

// inPlaceGate lets Pods be taken out of service while they are updated in place.
func inPlaceGate(spec *corev1.PodSpec) {
	gate := corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady}
	if !slices.Contains(spec.ReadinessGates, gate) {
		spec.ReadinessGates = append(spec.ReadinessGates, gate)
	}
}
