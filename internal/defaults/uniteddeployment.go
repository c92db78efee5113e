package defaults

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// UnitedDeployment fills in the defaults of set. Old is what it replaces, nil for a new one: a template that has not changed stays as it
// is. Only the template of a StatefulSet of Kubernetes is filled in; the workloads of
// other templates get their defaults when they are created.
func UnitedDeployment(set, old *v1beta1.UnitedDeployment, o Options) {
	spec := &set.Spec
	fill(&spec.Replicas, replicas)
	fill(&spec.RevisionHistoryLimit, revisionHistoryLimit)
	fillText(&spec.UpdateStrategy.Type, v1beta1.ManualUpdateStrategyType)
	fill(&spec.UpdateStrategy.ManualUpdate, v1beta1.ManualUpdate{})
	fillText(&spec.Topology.ScheduleStrategy.Type, v1beta1.FixedUnitedDeploymentScheduleStrategyType)
	subsetLimits(spec.Topology.Subsets)
	if now := nativeTemplate(set); now != nil {
		var was before
		if then := nativeTemplate(old); then != nil {
			was = before{&then.Template, then.VolumeClaimTemplates}
		}
		templates(&now.Template, now.VolumeClaimTemplates, was, o)
	}
	advancedGate(set, old)
}

// advancedGate lets Pods be taken out of service while they are updated in place, as in a StatefulSet that is created by itself. Later on
// it would be a change of the template, which recreates all Pods.
func advancedGate(set, old *v1beta1.UnitedDeployment) {
	now := set.Spec.Template.AdvancedStatefulSetTemplate
	if now == nil || old != nil && old.Spec.Template.AdvancedStatefulSetTemplate != nil {
		return
	}
	r := now.Spec.UpdateStrategy.RollingUpdate
	if r != nil && r.PodUpdatePolicy != "" && r.PodUpdatePolicy != v1beta1.RecreatePodUpdateStrategyType {
		inPlaceGate(&now.Spec.Template.Spec)
	}
}

// nativeTemplate returns the spec of the StatefulSets of Kubernetes that a UnitedDeployment makes; nil where it makes none.
func nativeTemplate(set *v1beta1.UnitedDeployment) *appsv1.StatefulSetSpec {
	if set == nil || set.Spec.Template.StatefulSetTemplate == nil {
		return nil
	}
	return &set.Spec.Template.StatefulSetTemplate.Spec
}

// subsetLimits has every subset say its least number of Pods where any limit is given.
func subsetLimits(subsets []v1beta1.Subset) {
	hasLimit := func(s v1beta1.Subset) bool { return s.MinReplicas != nil || s.MaxReplicas != nil }
	if !slices.ContainsFunc(subsets, hasLimit) || slices.ContainsFunc(subsets, func(s v1beta1.Subset) bool { return s.Replicas != nil }) {
		return
	}
	for i := range subsets {
		fill(&subsets[i].MinReplicas, intstr.FromInt32(0))
	}
}
