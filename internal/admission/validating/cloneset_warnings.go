package validating

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c cloneSetChange) warnings() []string {
	out := c.rolloutWarnings()
	if c.templateChanged() || !equality.Semantic.DeepEqual(c.old.Spec.Lifecycle, c.new.Spec.Lifecycle) {
		out = append(out, c.hookWarnings()...)
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
	if refusal := c.refusal(c.InPlace); refusal != nil && inPlace && kept < total {
		out = append(out, fmt.Sprintf("this change will recreate %d Pods because of %s %s: %s", total-kept, refusal.Op, refusal.Path, refusal.Why))
	}
	return out
}

// cloneSetSpelling tells of labels and annotations that stand for fields in one version and have no effect as they are written.
func cloneSetSpelling(w write[v1beta1.CloneSet]) []string {
	var details v1beta1.InPlaceUpdateStrategy
	if rolling := w.new.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.InPlaceUpdateStrategy != nil {
		details = *rolling.InPlaceUpdateStrategy
	}
	var out []string
	for _, a := range []struct {
		key, name string
		set       bool
	}{
		{keys.ImagePreDownloadParallelism, "imagePreDownloadParallelism", details.ImagePreDownloadParallelism != nil},
		{keys.ImagePreDownloadTimeoutSeconds, "imagePreDownloadTimeoutSeconds", details.ImagePreDownloadTimeoutSeconds != nil},
		{keys.ImagePreDownloadMinUpdatedReadyPods, "imagePreDownloadMinUpdatedReadyPods", details.ImagePreDownloadMinUpdatedReadyPods != nil},
	} {
		text, there := w.new.Annotations[a.key]
		switch {
		case !there || a.set:
		case w.older:
			out = append(out, fmt.Sprintf("metadata.annotations[%s]: %q has no effect: use a number of 0 or more", a.key, text))
		default:
			out = append(out, fmt.Sprintf("metadata.annotations[%s] has no effect in v1beta1: use spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.%s", a.key, a.name))
		}
	}
	if !w.older && w.new.Labels[keys.ScalingExcludePreparingDelete] == "true" && !w.new.Spec.ScaleStrategy.ExcludePreparingDelete {
		out = append(out, fmt.Sprintf("metadata.labels[%s] has no effect in v1beta1: use spec.scaleStrategy.excludePreparingDelete", keys.ScalingExcludePreparingDelete))
	}
	return out
}
