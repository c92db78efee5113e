package inplace

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// nextBatch returns, sorted, the containers that change together next: those without a launch priority, those of the highest priority, and
// whichever take a label or annotation that one of these takes as well. With the priorities sidecar 10 and main 0, sidecar is the first batch
// and main the second; when both take the annotation app-config, and that changes, they are one batch.
func nextBatch(p *corev1.Pod, state *pub.InPlaceUpdateState) []string {
	touched := touchedNext(state)
	highest := math.MinInt32
	for _, name := range touched {
		if priority, ok := launchPriority(pod.Container(p, name)); ok {
			highest = max(highest, priority)
		}
	}
	chosen := map[string]bool{}
	for _, name := range touched {
		priority, has := launchPriority(pod.Container(p, name))
		chosen[name] = !has || priority == highest
	}
	for grown := true; grown; {
		grown = false
		for _, name := range touched {
			if !chosen[name] && sharesKey(state.NextContainerRefMetadata, name, chosen) {
				chosen[name], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(touched, func(name string) bool { return !chosen[name] })
}

// touchedNext returns the containers that further batches change, sorted.
func touchedNext(state *pub.InPlaceUpdateState) []string {
	all := map[string]bool{}
	for name := range state.NextContainerImages {
		all[name] = true
	}
	for name := range state.NextContainerResources {
		all[name] = true
	}
	for name := range state.NextContainerRefMetadata {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func sharesKey(meta map[string]metav1.ObjectMeta, name string, chosen map[string]bool) bool {
	mine, ok := meta[name]
	if !ok {
		return false
	}
	shared := func(a, b map[string]string) bool {
		for key := range a {
			if _, ok := b[key]; ok {
				return true
			}
		}
		return false
	}
	for other, isChosen := range chosen {
		if theirs, ok := meta[other]; isChosen && ok && (shared(mine.Labels, theirs.Labels) || shared(mine.Annotations, theirs.Annotations)) {
			return true
		}
	}
	return false
}

// launchPriority returns the priority in the key of the container's launch barrier, and whether there is one.
func launchPriority(container *corev1.Container) (int, bool) {
	if container == nil {
		return 0, false
	}
	priority, ok := launch.Priority(container)
	return int(priority), ok
}
