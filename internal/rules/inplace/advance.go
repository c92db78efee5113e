package inplace

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
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
// further one once the batch before it is complete and ready. It changes the Pod it is given.
func Advance(p *corev1.Pod, o Options, now time.Time) Step {
	planned, err := Plan(p)
	if err != nil {
		return startAgain(p, err)
	}
	state, err := State(p)
	switch {
	case planned != nil:
		step := advancePlanned(p, state, planned, now)
		if err != nil && step.Problem == nil {
			step.Problem = fmt.Errorf("pod %s: %w; it is written anew", p.Name, err)
		}
		return step
	case err != nil && isHeldOut(p):
		return startAgain(p, err)
	case err != nil:
		dropState(p)
		return Step{Changed: true, Problem: fmt.Errorf("pod %s: %w; it is removed", p.Name, err)}
	default:
		return advanceBatch(p, state, o, now)
	}
}

// advancePlanned starts the first batch of a planned update when its time has come. The plan holds all that a lost state said.
func advancePlanned(p *corev1.Pod, state *pub.InPlaceUpdateState, planned *Planned, now time.Time) Step {
	if !revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], planned.Revision) {
		// The Pod was given another revision meanwhile: this plan is void, and another one follows.
		dropPlan(p)
		return Step{Changed: true}
	}
	patch, err := decodeMetadataPatch(planned.MetaDataPatch)
	if err != nil {
		return startAgain(p, err)
	}
	anew := state == nil
	if anew {
		state = &pub.InPlaceUpdateState{
			Revision:              planned.Revision,
			UpdateTimestamp:       ceilSecond(now),
			UpdateEnvFromMetadata: len(planned.ContainerRefMetadata) > 0,
			UpdateResources:       len(planned.ContainerResources) > 0,
			UpdateImages:          len(planned.ContainerImages) > 0,
		}
	}
	if began := ceilSecond(now); state.UpdateTimestamp.After(began.Time) {
		// Only a clock that has been set back explains this: the period begins now.
		state.UpdateTimestamp, anew = began, true
	}
	if left := planned.wait(state, now); left > 0 {
		if anew {
			writeState(p, state)
		}
		return Step{Changed: anew, Wait: left}
	}
	dropPlan(p)
	patch.apply(p)
	state.NextContainerImages, state.NextContainerResources = planned.ContainerImages, planned.ContainerResources
	state.NextContainerRefMetadata = planned.ContainerRefMetadata
	startBatch(p, state, now)
	return Step{Changed: true}
}

// wait returns the rest of the grace period in whole seconds.
func (g *Planned) wait(state *pub.InPlaceUpdateState, now time.Time) time.Duration {
	if g.GraceSeconds <= 0 {
		return 0
	}
	left := state.UpdateTimestamp.Add(time.Duration(g.GraceSeconds) * time.Second).Sub(now)
	if left <= 0 {
		return 0
	}
	return (left + time.Second - 1).Truncate(time.Second)
}

// startAgain removes the records of an update of which one can't be read, and with them the claim to be at the new revision: whoever owns
// the Pod then updates it anew.
func startAgain(p *corev1.Pod, problem error) Step {
	dropPlan(p)
	dropState(p)
	delete(p.Labels, appsv1.ControllerRevisionHashLabelKey)
	delete(p.Labels, keys.PodTemplateHash)
	return Step{Changed: true, Problem: fmt.Errorf("pod %s: %w; its update starts again", p.Name, problem)}
}

func advanceBatch(p *corev1.Pod, state *pub.InPlaceUpdateState, o Options, now time.Time) Step {
	if state == nil || !hasNext(state) || !batchProgress(p, state, o).Done {
		return Step{}
	}
	if state.PreCheckBeforeNext != nil {
		for _, name := range state.PreCheckBeforeNext.ContainersRequiredReady {
			status := pod.ContainerStatus(p, name)
			if pod.Container(p, name) != nil && (status == nil || !status.Ready) {
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
		if state.LastContainerStatuses == nil {
			state.LastContainerStatuses = map[string]pub.InPlaceUpdateContainerStatus{}
		}
		state.LastContainerStatuses[name] = Running(p, name)
		container.Image = image
	}
	if resources, ok := state.NextContainerResources[name]; ok && container != nil {
		container.Resources.Limits = merge(container.Resources.Limits, resources.Limits)
		container.Resources.Requests = merge(container.Resources.Requests, resources.Requests)
	}
	if meta, ok := state.NextContainerRefMetadata[name]; ok {
		p.Labels = merge(p.Labels, meta.Labels)
		p.Annotations = merge(p.Annotations, meta.Annotations)
	}
	state.NextContainerImages = without(state.NextContainerImages, name)
	state.NextContainerResources = without(state.NextContainerResources, name)
	state.NextContainerRefMetadata = without(state.NextContainerRefMetadata, name)
}

// merge returns a map with the changes written over it.
func merge[M ~map[K]V, K comparable, V any](on, changes M) M {
	if on == nil && len(changes) > 0 {
		on = M{}
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
// whichever take a label or annotation that one of these takes as well. With the priorities sidecar 10 and main 0, sidecar is the first
// batch and main the second; when both take the annotation app-config, and that changes, they are one batch.
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
