package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// check returns the promises that the controllers have broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	pods := podsByName{}
	var last *v1beta1.Rollout
	// most is the largest step that the release has come to: one that is gone back from may still be under way.
	var most *intstr.IntOrString
	// kept are the Pods that a rollback in batches began with.
	kept := int32(0)
	for _, c := range history {
		broken := func(rule, format string, args ...any) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
		}
		switch after := c.After.(type) {
		case *corev1.Pod:
			pods[c.Key.Name] = after
		case *v1beta1.Rollout:
			if last = after; !follows(after) {
				most = nil
				continue
			}
			now := after.Spec.Strategy.Canary.Steps[after.Status.CurrentStepIndex-1].Replicas
			if most == nil || planned(now, 100) > planned(most, 100) {
				most = now
			}
		case *v1beta1.BatchRelease:
			kept = ptr.Deref(after.Status.CanaryStatus.NoNeedUpdateReplicas, 0)
		case *appsv1beta1.CloneSet:
			before, _ := c.Before.(*appsv1beta1.CloneSet)
			if _, marked := steer.MarkOf(after); before == nil || c.Pass == nil || !marked || most == nil {
				continue
			}
			updated := max(updatedOf(pods, after.Status.UpdateRevision), updatedOf(podsAt(history, c.Pass), after.Status.UpdateRevision))
			if allows := *after.Spec.Replicas - int32(keptOf(after)); keptOf(after) < keptOf(before) && allows > max(limit(most, *after.Spec.Replicas, kept), updated) {
				broken(ruleSteps, "%d Pods may be updated at step %d, which says %s", allows, last.Status.CurrentStepIndex, most)
			}
		case nil:
			delete(pods, c.Key.Name)
		}
	}
	return out
}

type podsByName map[string]*corev1.Pod

// podsAt returns the Pods as a pass saw them: one that is gone since is still among those that are updated and stay so.
func podsAt(history []simulate.Change, p *simulate.Pass) podsByName {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	out := podsByName{}
	for _, c := range history {
		if c.Revision > p.Seen[kind] {
			break
		}
		if after, is := c.After.(*corev1.Pod); is {
			out[c.Key.Name] = after
		} else if c.After == nil && c.Key.Kind == kind {
			delete(out, c.Key.Name)
		}
	}
	return out
}

// updatedOf returns how many Pods are of a revision.
func updatedOf(pods podsByName, name string) int32 {
	updated := int32(0)
	for _, p := range pods {
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == name {
			updated++
		}
	}
	return updated
}

// limit returns how many Pods a step updates, or brings back if some were kept.
func limit(step *intstr.IntOrString, replicas, kept int32) int32 {
	return kept + planned(step, max(replicas-kept, 0))
}

// follows tells whether a Rollout is in the middle of its steps, where nothing but they decide.
func follows(r *v1beta1.Rollout) bool {
	return r.Status.Phase == v1beta1.RolloutPhaseProgressing && reasonOf(&r.Status) == v1beta1.ReasonInRolling &&
		r.Status.CurrentStepIndex > 0 && int(r.Status.CurrentStepIndex) <= len(r.Spec.Strategy.Canary.Steps)
}
