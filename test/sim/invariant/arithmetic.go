package invariant

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// bounds are the numbers of one version of a CloneSet.
type bounds struct {
	replicas, partition, unavailable, surge int
}

func boundsOf(set *v1beta1.CloneSet) bounds {
	b := bounds{replicas: int(*set.Spec.Replicas)}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || isOnDelete(set) {
		b.unavailable = max(1, b.replicas/5)
		if !isOnDelete(set) {
			b.unavailable = part("20%", b.replicas, math.Ceil)
		}
		return b
	}
	b.partition = min(number(rolling.Partition, b.replicas, math.Ceil), b.replicas)
	if p := rolling.Partition; p != nil && p.Type == intstr.String && p.StrVal != "100%" && b.replicas > 1 {
		b.partition = min(b.partition, b.replicas-1)
	}
	b.surge = number(rolling.MaxSurge, b.replicas, math.Ceil)
	rounding := math.Ceil
	if b.surge > 0 && !rolling.Paused {
		rounding = math.Floor
	}
	b.unavailable = part("20%", b.replicas, rounding)
	if rolling.MaxUnavailable != nil {
		b.unavailable = number(rolling.MaxUnavailable, b.replicas, rounding)
	}
	return b
}

func number(value *intstr.IntOrString, whole int, rounding func(float64) float64) int {
	switch {
	case value == nil:
		return 0
	case value.Type == intstr.Int:
		return int(value.IntVal)
	default:
		return part(value.StrVal, whole, rounding)
	}
}

// part is a percentage of whole. The text is one of the tests' own.
func part(text string, whole int, rounding func(float64) float64) int {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		panic("invariant: " + err.Error())
	}
	return int(rounding(percent * float64(whole) / 100))
}

func isOnDelete(set *v1beta1.CloneSet) bool {
	return set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType
}

func isPaused(set *v1beta1.CloneSet) bool {
	return set.Spec.UpdateStrategy.RollingUpdate != nil && set.Spec.UpdateStrategy.RollingUpdate.Paused
}

// mayRecreate reports whether the update strategy lets Pods be deleted in order to update them.
func mayRecreate(set *v1beta1.CloneSet) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	return !isOnDelete(set) && !isPaused(set) &&
		(rolling == nil || rolling.PodUpdatePolicy != v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType)
}

func isActive(p *corev1.Pod) bool {
	return p != nil && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded
}

func state(p *corev1.Pod) pub.LifecycleStateType {
	return pub.LifecycleStateType(p.Labels[keys.LifecycleState])
}

// Serves reports whether the Pod is available.
// Serves reports whether a Pod is in service: it runs, is ready for as long as it has to be, and no hook or update holds it.
func Serves(p *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	return serves(p, minReadySeconds, now)
}

func serves(p *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	if !isActive(p) || p.Status.Phase != corev1.PodRunning {
		return false
	}
	if s := state(p); s != "" && s != pub.LifecycleStateNormal {
		return false
	}
	ready, inPlace := condition(p, corev1.PodReady), condition(p, pub.InPlaceUpdateReady)
	if ready == nil || ready.Status != corev1.ConditionTrue || (inPlace != nil && inPlace.Status != corev1.ConditionTrue) {
		return false
	}
	return !ready.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second).After(now)
}

func condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func sameImages(a, b *corev1.Pod) bool {
	for i := range a.Spec.Containers {
		if i >= len(b.Spec.Containers) || a.Spec.Containers[i].Image != b.Spec.Containers[i].Image {
			return false
		}
	}
	return true
}

// isHooked reports whether the Pod carries a label or finalizer of the hook.
func isHooked(p *corev1.Pod, hook *pub.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if p.Labels[key] == value {
			return true
		}
	}
	for _, wanted := range hook.FinalizersHandler {
		for _, have := range p.Finalizers {
			if wanted == have {
				return true
			}
		}
	}
	return false
}

// isUsable reports whether the Pod counts as its node's.
func isUsable(p *corev1.Pod) bool {
	return isActive(p) && state(p) != pub.LifecycleStatePreparingDelete
}

func imagesOf(containers []corev1.Container) []string {
	var out []string
	for _, c := range containers {
		out = append(out, c.Image)
	}
	return out
}
