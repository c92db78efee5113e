package validating

import (
	"fmt"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

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
