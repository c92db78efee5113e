package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Step is what Advance did.
type Step struct {
	// Changed means that the Pod was changed and has to be written.
	Changed bool
	// Wait is the rest of the grace period, in whole seconds; zero when none runs.
	Wait time.Duration
	// Problem is a record on the Pod that can't be read; it has been removed, so that the update starts again.
	Problem error
}

// Advance takes an update on the Pod one step further, if it can: the first batch of containers once the grace period is over, and each
// further one once the batch before it is complete and ready.
func Advance(p *corev1.Pod, o Options, now time.Time) Step {
	state, err := State(p)
	if err != nil {
		return startAgain(p, err)
	}
	planned, err := Plan(p)
	if err != nil {
		return startAgain(p, err)
	}
	switch {
	case planned == nil:
		return advanceBatch(p, state, o, now)
	case state == nil || !revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], planned.Revision):
		// The Pod was given another revision meanwhile: this plan is void, and another one follows.
		dropPlan(p)
		return Step{Changed: true}
	}
	if left := state.UpdateTimestamp.Add(time.Duration(planned.GraceSeconds) * time.Second).Sub(now); left > 0 && planned.GraceSeconds > 0 {
		return Step{Wait: (left + time.Second - 1).Truncate(time.Second)}
	}
	patch, err := decodeMetadataPatch(planned.MetaDataPatch)
	if err != nil {
		return startAgain(p, err)
	}
	dropPlan(p)
	patch.apply(p)
	state.NextContainerImages, state.NextContainerResources = planned.ContainerImages, planned.ContainerResources
	state.NextContainerRefMetadata = planned.ContainerRefMetadata
	startBatch(p, state, now)
	return Step{Changed: true}
}

// startAgain removes records that can't be read, and with them the claim to be at the new revision, so that the Pod is updated anew.
func startAgain(p *corev1.Pod, problem error) Step {
	lost := Pending(p)
	dropPlan(p)
	dropState(p)
	if lost {
		delete(p.Labels, appsv1.ControllerRevisionHashLabelKey)
		delete(p.Labels, keys.PodTemplateHash)
	}
	return Step{Changed: true, Problem: fmt.Errorf("pod %s: %w; its update starts again", p.Name, problem)}
}

func advanceBatch(p *corev1.Pod, state *pub.InPlaceUpdateState, o Options, now time.Time) Step {
	if state == nil || !hasNext(state) || !batchProgress(p, state, o).Done {
		return Step{}
	}
	if state.PreCheckBeforeNext != nil {
		for _, name := range state.PreCheckBeforeNext.ContainersRequiredReady {
			if status := pod.ContainerStatus(p, name); status == nil || !status.Ready {
				return Step{}
			}
		}
	}
	startBatch(p, state, now)
	return Step{Changed: true}
}

func hasNext(state *pub.InPlaceUpdateState) bool {
	return len(state.NextContainerImages)+len(state.NextContainerResources)+len(state.NextContainerRefMetadata) > 0
}

// startBatch changes the containers of the next batch in the Pod, and leaves the rest in the state.
func startBatch(p *corev1.Pod, state *pub.InPlaceUpdateState, now time.Time) {
	batch := nextBatch(p, state)
	for _, name := range batch {
		startContainer(p, state, name)
	}
	state.ContainerBatchesRecord = append(state.ContainerBatchesRecord, pub.InPlaceUpdateContainerBatch{
		Timestamp: metav1.NewTime(now.Truncate(time.Second)), Containers: batch,
	})
	state.PreCheckBeforeNext = nil
	if hasNext(state) {
		state.PreCheckBeforeNext = &pub.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: batch}
	}
	writeState(p, state)
}

func startContainer(p *corev1.Pod, state *pub.InPlaceUpdateState, name string) {
	container := pod.Container(p, name)
	if image, ok := state.NextContainerImages[name]; ok && container != nil {
		container.Image = image
		if state.LastContainerStatuses == nil {
			state.LastContainerStatuses = map[string]pub.InPlaceUpdateContainerStatus{}
		}
		var last pub.InPlaceUpdateContainerStatus
		if status := pod.ContainerStatus(p, name); status != nil {
			last = pub.InPlaceUpdateContainerStatus{ImageID: status.ImageID, ContainerID: status.ContainerID}
		}
		state.LastContainerStatuses[name] = last
	}
	if resources, ok := state.NextContainerResources[name]; ok && container != nil {
		container.Resources.Limits = mergeList(container.Resources.Limits, resources.Limits)
		container.Resources.Requests = mergeList(container.Resources.Requests, resources.Requests)
	}
	if meta, ok := state.NextContainerRefMetadata[name]; ok {
		if len(meta.Labels) > 0 {
			maps.Copy(p.Labels, meta.Labels)
		}
		if len(meta.Annotations) > 0 {
			maps.Copy(p.Annotations, meta.Annotations)
		}
	}
	state.NextContainerImages = without(state.NextContainerImages, name)
	state.NextContainerResources = without(state.NextContainerResources, name)
	state.NextContainerRefMetadata = without(state.NextContainerRefMetadata, name)
}

func mergeList(on, changes corev1.ResourceList) corev1.ResourceList {
	if on == nil && len(changes) > 0 {
		on = corev1.ResourceList{}
	}
	maps.Copy(on, changes)
	return on
}

// without returns m less one key, and nil when nothing is left.
func without[V any](m map[string]V, key string) map[string]V {
	if _, ok := m[key]; !ok {
		return m
	}
	m = maps.Clone(m)
	delete(m, key)
	if len(m) == 0 {
		return nil
	}
	return m
}

// nextBatch returns, sorted, the containers that change together next: those without a launch priority, those of the highest priority, and
// whichever take a label or annotation that one of these takes as well.
func nextBatch(p *corev1.Pod, state *pub.InPlaceUpdateState) []string {
	touched := touchedNext(state)
	var highest *string
	priorities := map[string]string{}
	for _, name := range touched {
		if priority, ok := launchPriority(pod.Container(p, name)); ok {
			priorities[name] = priority
			if highest == nil || comparePriority(priority, *highest) > 0 {
				highest = &priority
			}
		}
	}
	chosen := map[string]bool{}
	for _, name := range touched {
		priority, has := priorities[name]
		chosen[name] = !has || priority == *highest
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

// launchPriority returns the decimal integer that the container's launch barrier holds, and whether there is one.
func launchPriority(container *corev1.Container) (string, bool) {
	if container == nil {
		return "", false
	}
	for i := range container.Env {
		env := &container.Env[i]
		if env.Name != keys.ContainerBarrierEnv || env.ValueFrom == nil || env.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		if priority, ok := strings.CutPrefix(env.ValueFrom.ConfigMapKeyRef.Key, "p_"); ok {
			return priority, true
		}
	}
	return "", false
}
