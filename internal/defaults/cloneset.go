package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

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
	if old == nil {
		templates(&spec.Template, spec.VolumeClaimTemplates, nil, o)
	} else {
		templates(&spec.Template, spec.VolumeClaimTemplates, &before{&old.Spec.Template, old.Spec.VolumeClaimTemplates}, o)
	}
	strategy := &spec.UpdateStrategy
	if strategy.Type == "" {
		strategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
	}
	if strategy.Type == v1beta1.OnDeleteCloneSetStrategyType {
		return // nothing below has an effect then
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	}
	rolling := strategy.RollingUpdate
	if rolling.PodUpdatePolicy == "" {
		rolling.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdatePolicyType
	}
	fill(&rolling.Partition, intstr.FromInt32(0))
	fill(&rolling.MaxUnavailable, intstr.FromString(maxUnavailable))
	fill(&rolling.MaxSurge, intstr.FromInt32(0))
	switch rolling.PodUpdatePolicy {
	case v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType:
		fill(&rolling.InPlaceUpdateStrategy, v1beta1.InPlaceUpdateStrategy{})
	}
}

// before is what an update replaces.
type before struct {
	template *corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim
}

func templates(template *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim, old *before, o Options) {
	if o.TemplateNoDefaults {
		return
	}
	if old == nil || !equality.Semantic.DeepEqual(template, old.template) {
		PodTemplate(template, o)
	}
	if old == nil || !equality.Semantic.DeepEqual(claims, old.claims) {
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
