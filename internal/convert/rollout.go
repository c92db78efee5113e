package convert

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Styles that the annotation keys.RollingStyle of v1alpha1 names, in any case.
const (
	stylePartition = "partition"
	styleBlueGreen = "bluegreen"
)

// rolloutRest is what v1alpha1 can't say of a Rollout. It travels in the annotation keys.RolloutHub.
type rolloutRest struct {
	// Annotations are those of the hub that v1alpha1 reads as fields.
	Annotations map[string]string       `json:"annotations,omitempty"`
	Spec        *v1beta1.RolloutSpec    `json:"spec,omitempty"`
	Status      *v1beta1.RolloutStatus  `json:"status,omitempty"`
	shown       *v1alpha1.RolloutSpec   // spec as v1alpha1 shows it
	shownStatus *v1alpha1.RolloutStatus // status as v1alpha1 shows it
}

// RolloutFromHub fills dst with what src means. What dst has no field for is in its annotation keys.RolloutHub.
func RolloutFromHub(src *v1beta1.Rollout, dst *v1alpha1.Rollout) {
	showRollout(src, dst)
	var again v1beta1.Rollout
	readRollout(dst, &again)
	rest := rolloutRest{}
	if !equality.Semantic.DeepEqual(src.Spec, again.Spec) {
		rest.Spec = &src.Spec
	}
	if !equality.Semantic.DeepEqual(src.Status, again.Status) {
		rest.Status = &src.Status
	}
	for _, key := range []string{keys.RollingStyle, keys.TrafficRoutingName} {
		if value, ok := src.Annotations[key]; ok {
			rest.Annotations = with(rest.Annotations, key, value)
		}
	}
	if rest.Spec == nil && rest.Status == nil && rest.Annotations == nil {
		return
	}
	text, _ := json.Marshal(rest) // numbers, texts and times alone, which can be written
	dst.Annotations = with(dst.Annotations, keys.RolloutHub, string(text))
}

// RolloutToHub fills dst with what src means. What v1alpha1 has no field for comes from the annotation keys.RolloutHub: all of it where the
// object is as it was shown, else what belongs to steps and requests that are still there.
func RolloutToHub(src *v1alpha1.Rollout, dst *v1beta1.Rollout) {
	readRollout(src, dst)
	rest := readRest(src)
	if rest == nil {
		return
	}
	switch {
	case rest.Spec == nil:
	case equality.Semantic.DeepEqual(*rest.shown, src.Spec):
		rest.Spec.DeepCopyInto(&dst.Spec)
	default:
		restoreSteps(&dst.Spec.Strategy, rest, src.Spec.Strategy.Canary)
	}
	switch {
	case rest.Status == nil:
	case equality.Semantic.DeepEqual(rest.shownStatus, &src.Status):
		rest.Status.DeepCopyInto(&dst.Status)
	default:
		dst.Status.Approvals, dst.Status.Rejected = slices.Clone(rest.Status.Approvals), rest.Status.Rejected.DeepCopy()
	}
	for key, value := range rest.Annotations {
		dst.Annotations = with(dst.Annotations, key, value)
	}
}

// readRest returns what the annotation of a Rollout says that it can't say itself; nil if it says nothing, or was shown with another style
// or TrafficRouting, which is then what its user wants.
func readRest(src *v1alpha1.Rollout) *rolloutRest {
	rest := &rolloutRest{}
	if text := src.Annotations[keys.RolloutHub]; text == "" || json.Unmarshal([]byte(text), rest) != nil {
		return nil
	}
	var before v1beta1.Rollout
	var shown v1alpha1.Rollout
	readRollout(src, &before) // for what needed no annotation
	before.Annotations = rest.Annotations
	if rest.Spec != nil {
		before.Spec = *rest.Spec
	}
	if rest.Status != nil {
		before.Status = *rest.Status
	}
	showRollout(&before, &shown)
	for _, key := range []string{keys.RollingStyle, keys.TrafficRoutingName} {
		if shown.Annotations[key] != src.Annotations[key] {
			return nil
		}
	}
	rest.shown, rest.shownStatus = &shown.Spec, &shown.Status
	return rest
}

// showRollout fills dst with what v1alpha1 can say of src.
func showRollout(src *v1beta1.Rollout, dst *v1alpha1.Rollout) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	dst.Annotations = without(dst.Annotations, keys.RollingStyle)
	dst.Spec = v1alpha1.RolloutSpec{Disabled: src.Spec.Disabled, Strategy: v1alpha1.RolloutStrategy{Paused: src.Spec.Strategy.Paused}}
	if ref := src.Spec.WorkloadRef; ref != (v1beta1.WorkloadReference{}) {
		dst.Spec.ObjectRef.WorkloadRef = &ref
	}
	canary := &v1alpha1.CanaryStrategy{}
	var steps *v1beta1.StepsStrategy
	switch s := src.Spec.Strategy; {
	case s.Canary != nil:
		steps = &s.Canary.StepsStrategy
		canary.PatchPodTemplateMetadata = s.Canary.PatchPodTemplateMetadata.DeepCopy()
		if !s.Canary.EnableExtraWorkloadForCanary {
			dst.Annotations = with(dst.Annotations, keys.RollingStyle, stylePartition)
		}
	case s.BlueGreen != nil:
		steps = &s.BlueGreen.StepsStrategy
		dst.Annotations = with(dst.Annotations, keys.RollingStyle, styleBlueGreen)
	}
	if steps != nil {
		dst.Spec.Strategy.Canary = canary
		showSteps(steps.DeepCopy(), canary)
		if steps.TrafficRoutingRef != "" {
			dst.Annotations = with(dst.Annotations, keys.TrafficRoutingName, steps.TrafficRoutingRef)
		}
	}
	showStatus(&src.Status, &dst.Status)
}

func showSteps(from *v1beta1.StepsStrategy, to *v1alpha1.CanaryStrategy) {
	to.TrafficRoutings, to.FailureThreshold = from.TrafficRoutings, from.FailureThreshold
	to.DisableGenerateCanaryService = from.DisableGenerateCanaryService
	for _, step := range from.Steps {
		shown := v1alpha1.Step{Replicas: step.Replicas, Pause: step.Pause}
		shown.RequestHeaderModifier = step.RequestHeaderModifier
		if step.Traffic != nil {
			shown.Weight = parsePercent(*step.Traffic)
		}
		for _, match := range step.Matches {
			shown.Matches = append(shown.Matches, v1alpha1.HTTPRouteMatch{Headers: match.Headers})
		}
		to.Steps = append(to.Steps, shown)
	}
}

// readRollout fills dst with what src says by its own fields, and by the annotations that stand for fields.
func readRollout(src *v1alpha1.Rollout, dst *v1beta1.Rollout) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	for _, key := range []string{keys.RollingStyle, keys.TrafficRoutingName, keys.RolloutHub} {
		dst.Annotations = without(dst.Annotations, key)
	}
	dst.Spec = v1beta1.RolloutSpec{Disabled: src.Spec.Disabled, Strategy: v1beta1.RolloutStrategy{Paused: src.Spec.Strategy.Paused}}
	if ref := src.Spec.ObjectRef.WorkloadRef; ref != nil {
		dst.Spec.WorkloadRef = *ref
	}
	style := strings.ToLower(src.Annotations[keys.RollingStyle])
	if canary := src.Spec.Strategy.Canary; canary != nil {
		steps := readSteps(canary.DeepCopy())
		steps.TrafficRoutingRef = src.Annotations[keys.TrafficRoutingName]
		if style == styleBlueGreen {
			dst.Spec.Strategy.BlueGreen = &v1beta1.BlueGreenStrategy{StepsStrategy: steps}
		} else {
			dst.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{
				StepsStrategy: steps, PatchPodTemplateMetadata: canary.PatchPodTemplateMetadata.DeepCopy(),
				EnableExtraWorkloadForCanary: style != stylePartition && hasExtraWorkload(src.Spec.ObjectRef.WorkloadRef),
			}
		}
	}
	readStatus(&src.Status, &dst.Status, style == styleBlueGreen)
}

// hasExtraWorkload tells whether canary style means a second workload, as it does for a Deployment; one that is not named may be a
// Deployment.
func hasExtraWorkload(ref *v1beta1.WorkloadReference) bool {
	return ref == nil || strings.HasPrefix(ref.APIVersion, "apps/") && ref.Kind == "Deployment"
}

func readSteps(from *v1alpha1.CanaryStrategy) v1beta1.StepsStrategy {
	to := v1beta1.StepsStrategy{
		TrafficRoutings: from.TrafficRoutings, FailureThreshold: from.FailureThreshold,
		DisableGenerateCanaryService: from.DisableGenerateCanaryService,
	}
	for _, shown := range from.Steps {
		step := v1beta1.Step{Replicas: shown.Replicas, Pause: shown.Pause, RequestHeaderModifier: shown.RequestHeaderModifier}
		if shown.Weight != nil {
			share := strconv.Itoa(int(*shown.Weight)) + "%"
			step.Traffic = &share
			if step.Replicas == nil {
				step.Replicas = &intstr.IntOrString{Type: intstr.String, StrVal: share}
			}
		}
		for _, match := range shown.Matches {
			step.Matches = append(step.Matches, v1beta1.HTTPRouteMatch{Headers: match.Headers})
		}
		to.Steps = append(to.Steps, step)
	}
	return to
}

// parsePercent reads a percentage such as "20%"; nil if it is spelled otherwise.
func parsePercent(text string) *int32 {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 32)
	if err != nil || strconv.FormatInt(n, 10)+"%" != text {
		return nil
	}
	weight := int32(n)
	return &weight
}
