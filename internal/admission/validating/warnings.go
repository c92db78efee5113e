package validating

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c cloneSetChange) warnings() []string {
	var out []string
	out = append(out, c.rolloutWarnings()...)
	if c.old == nil || c.templateChanged() || !equality.Semantic.DeepEqual(c.old.Spec.Lifecycle, c.new.Spec.Lifecycle) {
		out = append(out, c.workload().hookWarnings(c.new.Spec.Lifecycle)...)
	}
	return out
}

func (c cloneSetChange) rolloutWarnings() []string {
	rolling := c.new.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || c.new.Spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType {
		return nil
	}
	total := max(int(replicasOf(c.new.Spec.Replicas)), 0)
	kept, err := budget.Partition(rolling.Partition, total)
	if err != nil {
		return nil
	}
	var out []string
	strategyChanged := c.old == nil || !equality.Semantic.DeepEqual(c.old.Spec.UpdateStrategy, c.new.Spec.UpdateStrategy)
	inPlace := rolling.PodUpdatePolicy == v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	if c.old != nil && c.templateChanged() && total > 0 && kept >= total {
		out = append(out, nothingMoves("Pod", rolling.Partition, total))
	}
	if surge, err := budget.Scaled(rolling.MaxSurge, total, budget.Up); err == nil && surge > 0 && inPlace && strategyChanged {
		out = append(out, fmt.Sprintf("maxSurge %s with InPlaceIfPossible: up to %d Pods of an update are created anew instead of updated in place", rolling.MaxSurge, surge))
	}
	if refusal := c.refusal(); refusal != nil && inPlace && kept < total {
		out = append(out, fmt.Sprintf("this change will recreate %d Pods because of %s %s: %s", total-kept, refusal.Op, refusal.Path, refusal.Why))
	}
	return out
}
