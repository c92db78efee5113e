package convert

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// restoreSteps adds to a strategy what v1alpha1 can't say of it and the user of v1alpha1 has therefore not changed.
func restoreSteps(to *v1beta1.RolloutStrategy, rest *rolloutRest, now *v1alpha1.CanaryStrategy) {
	was := rest.Spec.Strategy.DeepCopy()
	to.ProgressDeadlineSeconds, to.OnProgressDeadline, to.Guard = was.ProgressDeadlineSeconds, was.OnProgressDeadline, was.Guard
	stored, target, then := stepsOf(&rest.Spec.Strategy), stepsOf(to), rest.shown.Strategy.Canary
	if stored == nil || target == nil || then == nil {
		return
	}
	for i := range target.Steps {
		j := counterpart(now.Steps, i, then.Steps)
		if j < 0 {
			continue
		}
		target.Steps[i].Analysis = stored.Steps[j].Analysis.DeepCopy()
		target.Steps[i].PodMetadata = stored.Steps[j].PodMetadata.DeepCopy()
		for m := range target.Steps[i].Matches {
			if n := counterpart(now.Steps[i].Matches, m, then.Steps[j].Matches); n >= 0 {
				match, was := &target.Steps[i].Matches[m], &stored.Steps[j].Matches[n]
				match.Path, match.QueryParams = was.Path.DeepCopy(), slices.Clone(was.QueryParams)
			}
		}
	}
}

// counterpart returns where item i of now is in then: at its place if as many items are there as were, else where it is the same; -1 if it
// is new.
func counterpart[T any](now []T, i int, then []T) int {
	if len(now) == len(then) {
		return i
	}
	return slices.IndexFunc(then, func(was T) bool { return equality.Semantic.DeepEqual(was, now[i]) })
}

func stepsOf(s *v1beta1.RolloutStrategy) *v1beta1.StepsStrategy {
	switch {
	case s.Canary != nil:
		return &s.Canary.StepsStrategy
	case s.BlueGreen != nil:
		return &s.BlueGreen.StepsStrategy
	}
	return nil
}

// showStatus fills dst with what v1alpha1 can say of src. A blueGreen release is shown as a canary.
func showStatus(src *v1beta1.RolloutStatus, dst *v1alpha1.RolloutStatus) {
	all := src.DeepCopy()
	*dst = v1alpha1.RolloutStatus{
		ObservedGeneration: all.ObservedGeneration, CanaryStatus: all.CanaryStatus, Conditions: all.Conditions,
		Phase: all.Phase, Message: all.Message,
	}
	if blue := all.BlueGreenStatus; blue != nil && all.CanaryStatus == nil {
		dst.CanaryStatus = &v1beta1.CanaryStatus{
			CommonStatus: blue.CommonStatus, CanaryRevision: blue.UpdatedRevision,
			CanaryReplicas: blue.UpdatedReplicas, CanaryReadyReplicas: blue.UpdatedReadyReplicas,
		}
	}
}

func readStatus(src *v1alpha1.RolloutStatus, dst *v1beta1.RolloutStatus, blueGreen bool) {
	all := src.DeepCopy()
	*dst = v1beta1.RolloutStatus{
		ObservedGeneration: all.ObservedGeneration, Conditions: all.Conditions, Phase: all.Phase, Message: all.Message,
	}
	c := all.CanaryStatus
	if c == nil {
		return
	}
	dst.CurrentStepIndex, dst.CurrentStepState = c.CurrentStepIndex, c.CurrentStepState
	if !blueGreen {
		dst.CanaryStatus = c
		return
	}
	dst.BlueGreenStatus = &v1beta1.BlueGreenStatus{
		CommonStatus: c.CommonStatus, UpdatedRevision: c.CanaryRevision,
		UpdatedReplicas: c.CanaryReplicas, UpdatedReadyReplicas: c.CanaryReadyReplicas,
	}
}
