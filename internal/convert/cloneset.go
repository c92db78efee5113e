package convert

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// CloneSetToHub fills dst with what src means. Annotations that stand for fields stay where they are; one that can't be read sets no field.
func CloneSetToHub(src *v1alpha1.CloneSet, dst *v1beta1.CloneSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1beta1.CloneSetSpec{
		CloneSetBaseSpec: in.CloneSetBaseSpec,
		ScaleStrategy: v1beta1.CloneSetScaleStrategy{
			PodsToDelete:           in.ScaleStrategy.PodsToDelete,
			MaxUnavailable:         in.ScaleStrategy.MaxUnavailable,
			EnablePVCReuse:         !in.ScaleStrategy.DisablePVCReuse,
			ExcludePreparingDelete: src.Labels[keys.ScalingExcludePreparingDelete] == "true",
		},
		UpdateStrategy: updateStrategyToHub(&in.UpdateStrategy, src.Annotations),
	}
	delete(dst.Annotations, keys.OnDeletePodUpdatePolicy)
	src.Status.DeepCopyInto(&dst.Status)
}

// updateStrategyToHub takes in over; the result shares its memory.
func updateStrategyToHub(in *v1alpha1.CloneSetUpdateStrategy, annotations map[string]string) v1beta1.CloneSetUpdateStrategy {
	rolling := &v1beta1.RollingUpdateCloneSetStrategy{
		Partition:             in.Partition,
		MaxUnavailable:        in.MaxUnavailable,
		MaxSurge:              in.MaxSurge,
		Paused:                in.Paused,
		PriorityStrategy:      in.PriorityStrategy,
		ScatterStrategy:       in.ScatterStrategy,
		InPlaceUpdateStrategy: inPlaceToHub(in.InPlaceUpdateStrategy, annotations),
	}
	switch in.Type {
	case v1alpha1.OnDeleteCloneSetUpdateStrategyType:
		policy, kept := annotations[keys.OnDeletePodUpdatePolicy]
		rolling.PodUpdatePolicy = v1beta1.CloneSetPodUpdatePolicyType(policy)
		if !kept && isZeroRolling(rolling) {
			rolling = nil
		}
		return v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDeleteCloneSetStrategyType, RollingUpdate: rolling}
	case v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType:
		rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	case v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType:
		rolling.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
	default: // Wire: an unknown way of updating has always meant to recreate.
		rolling.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdatePolicyType
	}
	return v1beta1.CloneSetUpdateStrategy{Type: v1beta1.RollingUpdateCloneSetStrategyType, RollingUpdate: rolling}
}

func isZeroRolling(r *v1beta1.RollingUpdateCloneSetStrategy) bool {
	return r.PodUpdatePolicy == "" && r.Partition == nil && r.MaxUnavailable == nil && r.MaxSurge == nil && !r.Paused &&
		r.PriorityStrategy == nil && len(r.ScatterStrategy) == 0 && r.InPlaceUpdateStrategy == nil
}

func inPlaceToHub(in *v1alpha1.InPlaceUpdateStrategy, annotations map[string]string) *v1beta1.InPlaceUpdateStrategy {
	out := v1beta1.InPlaceUpdateStrategy{
		ImagePreDownloadParallelism:         parseParallelism(annotations[keys.ImagePreDownloadParallelism]),
		ImagePreDownloadTimeoutSeconds:      parseInt32(annotations[keys.ImagePreDownloadTimeoutSeconds]),
		ImagePreDownloadMinUpdatedReadyPods: parseInt32(annotations[keys.ImagePreDownloadMinUpdatedReadyPods]),
	}
	if in != nil {
		out.GracePeriodSeconds = in.GracePeriodSeconds
	}
	if in == nil && out == (v1beta1.InPlaceUpdateStrategy{}) {
		return nil
	}
	return &out
}

// parseInt32 returns nil for what no field may hold; the fields take no negative numbers.
func parseInt32(text string) *int32 {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil
	}
	value := int32(n)
	return &value
}

func parseParallelism(text string) *intstr.IntOrString {
	n := parseInt32(text)
	if n == nil {
		return nil
	}
	value := intstr.FromInt32(*n)
	return &value
}

// CloneSetFromHub fills dst with what src means. The fields of src decide on the annotations and the label that stand for them: they are
// written where the field is set and removed where it is not, so that a field taken away does not come back with the next write.
func CloneSetFromHub(src *v1beta1.CloneSet, dst *v1alpha1.CloneSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1alpha1.CloneSetSpec{
		CloneSetBaseSpec: in.CloneSetBaseSpec,
		ScaleStrategy: v1alpha1.CloneSetScaleStrategy{
			PodsToDelete:    in.ScaleStrategy.PodsToDelete,
			MaxUnavailable:  in.ScaleStrategy.MaxUnavailable,
			DisablePVCReuse: !in.ScaleStrategy.EnablePVCReuse,
		},
		UpdateStrategy: updateStrategyFromHub(&in.UpdateStrategy),
	}
	dst.Labels = excludeLabel(dst.Labels, in.ScaleStrategy.ExcludePreparingDelete)
	dst.Annotations = strategyAnnotations(dst.Annotations, &in.UpdateStrategy)
	src.Status.DeepCopyInto(&dst.Status)
}

// updateStrategyFromHub takes in over; the result shares its memory.
func updateStrategyFromHub(in *v1beta1.CloneSetUpdateStrategy) v1alpha1.CloneSetUpdateStrategy {
	out := v1alpha1.CloneSetUpdateStrategy{Type: updateTypeFromHub(in)}
	if rolling := in.RollingUpdate; rolling != nil {
		out.Partition = rolling.Partition
		out.MaxUnavailable = rolling.MaxUnavailable
		out.MaxSurge = rolling.MaxSurge
		out.Paused = rolling.Paused
		out.PriorityStrategy = rolling.PriorityStrategy
		out.ScatterStrategy = rolling.ScatterStrategy
		out.InPlaceUpdateStrategy = inPlaceFromHub(rolling.InPlaceUpdateStrategy, out.Type)
	}
	return out
}

func updateTypeFromHub(in *v1beta1.CloneSetUpdateStrategy) v1alpha1.CloneSetUpdateStrategyType {
	switch {
	case in.Type == v1beta1.OnDeleteCloneSetStrategyType:
		return v1alpha1.OnDeleteCloneSetUpdateStrategyType
	case in.RollingUpdate == nil || in.RollingUpdate.PodUpdatePolicy == "":
		return v1alpha1.RecreateCloneSetUpdateStrategyType
	}
	return v1alpha1.CloneSetUpdateStrategyType(in.RollingUpdate.PodUpdatePolicy)
}

// inPlaceFromHub leaves out a strategy that is there for annotations alone, unless the type is one that gets an empty strategy by default.
func inPlaceFromHub(in *v1beta1.InPlaceUpdateStrategy, updateType v1alpha1.CloneSetUpdateStrategyType) *v1alpha1.InPlaceUpdateStrategy {
	inPlace := updateType == v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType ||
		updateType == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	switch {
	case in == nil:
		return nil
	case in.GracePeriodSeconds == 0 && *in != (v1beta1.InPlaceUpdateStrategy{}) && !inPlace:
		return nil
	}
	return &v1alpha1.InPlaceUpdateStrategy{GracePeriodSeconds: in.GracePeriodSeconds}
}

func excludeLabel(labels map[string]string, exclude bool) map[string]string {
	if exclude {
		return with(labels, keys.ScalingExcludePreparingDelete, "true")
	}
	if labels[keys.ScalingExcludePreparingDelete] == "true" {
		return without(labels, keys.ScalingExcludePreparingDelete)
	}
	return labels
}

// strategyAnnotations returns annotations with those that stand for fields of the strategy.
func strategyAnnotations(annotations map[string]string, in *v1beta1.CloneSetUpdateStrategy) map[string]string {
	var details v1beta1.InPlaceUpdateStrategy
	if in.RollingUpdate != nil && in.RollingUpdate.InPlaceUpdateStrategy != nil {
		details = *in.RollingUpdate.InPlaceUpdateStrategy
	}
	var parallelism *int32
	if p := details.ImagePreDownloadParallelism; p != nil {
		if p.Type == intstr.Int {
			parallelism = &p.IntVal
		} else {
			parallelism = parseInt32(p.StrVal)
		}
	}
	annotations = numberAnnotation(annotations, keys.ImagePreDownloadParallelism, parallelism)
	annotations = numberAnnotation(annotations, keys.ImagePreDownloadTimeoutSeconds, details.ImagePreDownloadTimeoutSeconds)
	annotations = numberAnnotation(annotations, keys.ImagePreDownloadMinUpdatedReadyPods, details.ImagePreDownloadMinUpdatedReadyPods)

	if in.Type == v1beta1.OnDeleteCloneSetStrategyType && in.RollingUpdate != nil &&
		(in.RollingUpdate.PodUpdatePolicy != "" || isZeroRolling(in.RollingUpdate)) {
		return with(annotations, keys.OnDeletePodUpdatePolicy, string(in.RollingUpdate.PodUpdatePolicy))
	}
	return without(annotations, keys.OnDeletePodUpdatePolicy)
}

// numberAnnotation makes the annotation say what the field says. A text that already means the same number keeps its spelling, and one that
// no field could hold stays: it is not ours to drop.
func numberAnnotation(annotations map[string]string, key string, field *int32) map[string]string {
	meant := parseInt32(annotations[key])
	switch {
	case field == nil && meant != nil:
		return without(annotations, key)
	case field != nil && (meant == nil || *meant != *field):
		return with(annotations, key, strconv.Itoa(int(*field)))
	}
	return annotations
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		return map[string]string{key: value}
	}
	m[key] = value
	return m
}

// without removes the key; a map that it empties becomes nil, as one that was never there.
func without(m map[string]string, key string) map[string]string {
	if _, ok := m[key]; !ok {
		return m
	}
	if len(m) == 1 {
		return nil
	}
	m = maps.Clone(m)
	delete(m, key)
	return m
}
