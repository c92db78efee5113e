package validating

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// olderType checks what conversion would turn into ReCreate: an update type that v1alpha1 does not have.
func olderType(t v1alpha1.CloneSetUpdateStrategyType) field.ErrorList {
	known := []v1alpha1.CloneSetUpdateStrategyType{
		v1alpha1.RecreateCloneSetUpdateStrategyType, v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType,
		v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType, v1alpha1.OnDeleteCloneSetUpdateStrategyType,
	}
	if t == "" || slices.Contains(known, t) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "updateStrategy", "type"), t, fmt.Sprintf("must be one of %v", known))}
}

// userErrors names fields as the user's version does.
func (d *decoded) userErrors(errs field.ErrorList) field.ErrorList {
	if d.older == nil {
		return errs
	}
	details := "spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy."
	names := []struct{ hub, older string }{ // the first match counts
		{details + "imagePreDownloadParallelism", "metadata.annotations[" + keys.ImagePreDownloadParallelism + "]"},
		{details + "imagePreDownloadTimeoutSeconds", "metadata.annotations[" + keys.ImagePreDownloadTimeoutSeconds + "]"},
		{details + "imagePreDownloadMinUpdatedReadyPods", "metadata.annotations[" + keys.ImagePreDownloadMinUpdatedReadyPods + "]"},
		{"spec.updateStrategy.rollingUpdate.podUpdatePolicy", "spec.updateStrategy.type"},
		{"spec.updateStrategy.rollingUpdate", "spec.updateStrategy"},
	}
	for _, err := range errs {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(err.Field, name.hub); ok {
				err.Field = name.older + rest
				break
			}
		}
	}
	return errs
}

// spellingWarnings tells of labels and annotations that stand for fields in one version and have no effect as they are written.
func (d *decoded) spellingWarnings() []string {
	var details v1beta1.InPlaceUpdateStrategy
	if rolling := d.hub.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.InPlaceUpdateStrategy != nil {
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
		text, there := d.hub.Annotations[a.key]
		switch {
		case !there || a.set:
		case d.older != nil:
			out = append(out, fmt.Sprintf("metadata.annotations[%s]: %q has no effect: use a number of 0 or more", a.key, text))
		default:
			out = append(out, fmt.Sprintf("metadata.annotations[%s] has no effect in v1beta1: use spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.%s", a.key, a.name))
		}
	}
	if d.older == nil && d.hub.Labels[keys.ScalingExcludePreparingDelete] == "true" && !d.hub.Spec.ScaleStrategy.ExcludePreparingDelete {
		out = append(out, fmt.Sprintf("metadata.labels[%s] has no effect in v1beta1: use spec.scaleStrategy.excludePreparingDelete", keys.ScalingExcludePreparingDelete))
	}
	return out
}
