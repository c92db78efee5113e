package convert

import (
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ResourceDistributionToHub fills dst with what src means: namespaceLabelSelector is namespaceSelector there, and failedNamespace is
// failedNamespaces.
func ResourceDistributionToHub(src *v1alpha1.ResourceDistribution, dst *v1beta1.ResourceDistribution) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.ResourceDistributionBaseSpec.DeepCopyInto(&dst.Spec.ResourceDistributionBaseSpec)
	src.Spec.Targets.ResourceDistributionNamedTargets.DeepCopyInto(&dst.Spec.Targets.ResourceDistributionNamedTargets)
	src.Spec.Targets.NamespaceLabelSelector.DeepCopyInto(&dst.Spec.Targets.NamespaceSelector)
	src.Status.ResourceDistributionBaseStatus.DeepCopyInto(&dst.Status.ResourceDistributionBaseStatus)
	for _, c := range src.Status.Conditions {
		dst.Status.Conditions = append(dst.Status.Conditions, v1beta1.ResourceDistributionCondition{
			ResourceDistributionConditionBase: c.ResourceDistributionConditionBase, FailedNamespaces: slices.Clone(c.FailedNamespace),
		})
	}
}

// ResourceDistributionFromHub is the reverse of ResourceDistributionToHub.
func ResourceDistributionFromHub(src *v1beta1.ResourceDistribution, dst *v1alpha1.ResourceDistribution) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.ResourceDistributionBaseSpec.DeepCopyInto(&dst.Spec.ResourceDistributionBaseSpec)
	src.Spec.Targets.ResourceDistributionNamedTargets.DeepCopyInto(&dst.Spec.Targets.ResourceDistributionNamedTargets)
	src.Spec.Targets.NamespaceSelector.DeepCopyInto(&dst.Spec.Targets.NamespaceLabelSelector)
	src.Status.ResourceDistributionBaseStatus.DeepCopyInto(&dst.Status.ResourceDistributionBaseStatus)
	for _, c := range src.Status.Conditions {
		dst.Status.Conditions = append(dst.Status.Conditions, v1alpha1.ResourceDistributionCondition{
			ResourceDistributionConditionBase: c.ResourceDistributionConditionBase, FailedNamespace: slices.Clone(c.FailedNamespaces),
		})
	}
}
