package defaults

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

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
