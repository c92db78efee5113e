package defaults

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

const (
	replicas             = 1
	revisionHistoryLimit = 10
	maxUnavailable       = "20%"
)

// Options say which defaults are wanted.
type Options struct {
	// TemplateNoDefaults leaves Pod templates and claim templates as the user wrote them (gate TemplateNoDefaults).
	TemplateNoDefaults bool
	// HostNetworkHostPorts gives ports under hostNetwork the host port of their number (gate DefaultHostNetworkHostPortsInPodTemplates).
	HostNetworkHostPorts bool
	// ClaimRetention fills in when claims of StatefulSets are deleted (gate StatefulSetAutoDeletePVC).
	ClaimRetention bool
	// ClaimResize fills in what a larger claim template of a StatefulSet does (gate StatefulSetAutoResizePVCGate).
	ClaimResize bool
}

// CloneSet fills in the defaults of set. Old is what it replaces, nil for a new one: a template that has not changed stays as it is, so
// that no build of the manager starts a rollout by knowing other defaults than the one before.
func CloneSet(set, old *v1beta1.CloneSet, o Options) {
	spec := &set.Spec
	fill(&spec.Replicas, replicas)
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	var was before
	if old != nil {
		was = before{&old.Spec.Template, old.Spec.VolumeClaimTemplates}
	}
	templates(&spec.Template, spec.VolumeClaimTemplates, was, o)
	strategy := &spec.UpdateStrategy
	fillText(&strategy.Type, v1beta1.RollingUpdateCloneSetStrategyType)
	if strategy.Type == v1beta1.OnDeleteCloneSetStrategyType {
		return // nothing below has an effect then
	}
	fill(&strategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
	rolling := strategy.RollingUpdate
	fillText(&rolling.PodUpdatePolicy, v1beta1.RecreateCloneSetPodUpdatePolicyType)
	fill(&rolling.Partition, intstr.FromInt32(0))
	fill(&rolling.MaxUnavailable, intstr.FromString(maxUnavailable))
	fill(&rolling.MaxSurge, intstr.FromInt32(0))
	switch rolling.PodUpdatePolicy {
	case v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType:
		fill(&rolling.InPlaceUpdateStrategy, v1beta1.InPlaceUpdateStrategy{})
	}
}

// before is what an update replaces; zero for a new object.
type before struct {
	template *corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim
}

func templates(template *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim, old before, o Options) {
	if o.TemplateNoDefaults {
		return
	}
	if old.template == nil || !equality.Semantic.DeepEqual(template, old.template) {
		PodTemplate(template, o)
	}
	if old.template == nil || !equality.Semantic.DeepEqual(claims, old.claims) {
		Claims(claims)
	}
}

// Claims fills in the defaults of claim templates.
//
// Wire: it is the phase alone. The mode of the volume has never been filled in, and the hash of the claim templates depends on that.
func Claims(claims []corev1.PersistentVolumeClaim) {
	for i := range claims {
		fillText(&claims[i].Status.Phase, corev1.ClaimPending)
	}
}

// fill sets what is unset.
func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func fillText[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// StatefulSet fills in the defaults of set. Old is what it replaces, nil for a new one: a template that has not changed stays as it is, so
// that no build of the manager starts a rollout by knowing other defaults than the one before.
func StatefulSet(set, old *v1beta1.StatefulSet, o Options) {
	spec := &set.Spec
	fill(&spec.Replicas, replicas)
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	fillText(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	var was before
	if old != nil {
		was = before{&old.Spec.Template, old.Spec.VolumeClaimTemplates}
	}
	templates(&spec.Template, spec.VolumeClaimTemplates, was, o)
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

// burstReplicas is how many Pods of a DaemonSet are created at once where it does not say.
const burstReplicas = 250

// DaemonSet fills in the defaults of set.
//
// Wire: the template stays as the user wrote it. It has never been filled in, and the bytes of every stored revision depend on that.
func DaemonSet(set *v1beta1.DaemonSet) {
	spec := &set.Spec
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	fill(&spec.BurstReplicas, intstr.FromInt32(burstReplicas))
	fillText(&spec.UpdateStrategy.Type, v1beta1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type != v1beta1.RollingUpdateDaemonSetStrategyType {
		return // nothing below has an effect then
	}
	fill(&spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateDaemonSet{})
	rolling := spec.UpdateStrategy.RollingUpdate
	fillText(&rolling.Type, v1beta1.StandardRollingUpdateType)
	nodeLimits(&rolling.MaxUnavailable, &rolling.MaxSurge)
}

// nodeLimits lets one node be unavailable where nothing is said. Whoever gives one of the limits means the other one to be 0.
func nodeLimits(maxUnavailable, maxSurge **intstr.IntOrString) {
	if *maxUnavailable == nil && *maxSurge == nil {
		fill(maxUnavailable, intstr.FromInt32(1))
		fill(maxSurge, intstr.FromInt32(0))
	}
}
