// Package inplace changes a running Pod to another revision without recreating it: which changes can go that way, how they are carried out
// step by step, and when they are done. It reads revisions by package revision.
//
// Images can change, labels and annotations, environment variables that come from those, and, where allowed, CPU and memory. The steps of
// one update, each of which leaves on the Pod all that the next one needs, so that it can go on after a crash at any point:
//
//	Begin     out of service (InPlaceUpdateReady False), the whole plan in an annotation, the labels of the new revision
//	Advance   after the grace period the first batch of containers; each further batch once the one before runs and is ready
//	Progress  whether the containers run what they should
//	Finish    back into service (InPlaceUpdateReady True)
//
// A newer revision may take over at any point: Begin starts from what the Pod has then, and takes along what the update before has not
// done. A Pod's labels name the revision of an update from its start, so that the change from there says nothing of that.
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

// Target is the revision that a Pod is brought to, and how.
type Target struct {
	// Revision is the full name of the revision.
	Revision string
	// Labels are those by which the Pod says its revision.
	Labels map[string]string
	// GraceSeconds is how long the Pod is out of service before its containers change.
	GraceSeconds int32
	Now          time.Time
}

// startReason is why the readiness gate is False during an update.
const startReason = "StartInPlaceUpdate"

// Begin changes the Pod such that it is out of service and carries the whole plan: what is left to do can be read from the Pod alone. A
// change that touches no container is done at once, and the Pod stays in service. An update that is under way is superseded: what it has
// not done yet and the change does not undo is done along with the change.
func Begin(p *corev1.Pod, c Change, t Target) {
	left := unfinishedOn(p)
	todo := left.with(p, c)
	grace := t.GraceSeconds
	if !c.TouchesContainers() {
		// Whatever touches containers now stems from the update before.
		grace = left.grace
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	maps.Copy(p.Labels, t.Labels)
	dropPlan(p)
	writeState(p, &pub.InPlaceUpdateState{
		Revision:               t.Revision,
		UpdateTimestamp:        ceilSecond(t.Now),
		LastContainerStatuses:  left.restarting,
		UpdateEnvFromMetadata:  len(todo.metadata) > 0 || left.environment,
		UpdateResources:        len(todo.resources) > 0 || left.resize,
		UpdateImages:           len(todo.images)+len(left.restarting) > 0 || left.unseen,
		ContainerBatchesRecord: left.batches,
	})
	if !todo.touchesContainers() {
		todo.patch.apply(p)
		return
	}
	if pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && todo.restarts(p) {
		pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: startReason}, t.Now)
	}
	writePlan(p, &Planned{
		Revision:              t.Revision,
		ContainerImages:       todo.images,
		ContainerRefMetadata:  todo.metadata,
		ContainerResources:    todo.resources,
		MetaDataPatch:         todo.patch.encode(),
		UpdateEnvFromMetadata: len(todo.metadata) > 0,
		GraceSeconds:          grace,
	})
}

// ceilSecond rounds up to the precision of stored times, so that a period that is counted from it is never short.
func ceilSecond(t time.Time) metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return metav1.NewTime(whole)
}

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
	for _, name := range required(state) {
		status := pod.ContainerStatus(p, name)
		if pod.Container(p, name) != nil && (status == nil || !status.Ready) {
			return Step{}
		}
	}
	startBatch(p, state, now)
	return Step{Changed: true}
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
	delete(state.NextContainerImages, name)
	delete(state.NextContainerResources, name)
	delete(state.NextContainerRefMetadata, name)
}

// required returns the containers that have to be ready before the next batch.
func required(state *pub.InPlaceUpdateState) []string {
	if state.PreCheckBeforeNext == nil {
		return nil
	}
	return state.PreCheckBeforeNext.ContainersRequiredReady
}

// Verdict says whether an update is done, and else what it waits for, in words.
type Verdict struct {
	Done bool
	Why  string
}

// Progress evaluates whether no in-place update is under way on the Pod. A Pod that never had one is done.
func Progress(p *corev1.Pod, o Options) Verdict {
	if Pending(p) {
		return Verdict{Why: "its update is planned and has not begun"}
	}
	state, err := State(p)
	if state == nil || err != nil {
		// A record that can't be read is removed by Advance.
		return Verdict{Done: true}
	}
	if verdict := batchProgress(p, state, o); !verdict.Done {
		return verdict
	}
	if hasNext(state) {
		return Verdict{Why: fmt.Sprintf("containers %s follow once %s are ready",
			strings.Join(touchedNext(state), ", "), strings.Join(required(state), ", "))}
	}
	return Verdict{Done: true}
}

// batchProgress evaluates the containers that have been changed so far.
func batchProgress(p *corev1.Pod, state *pub.InPlaceUpdateState, o Options) Verdict {
	if (state.UpdateImages || state.UpdateResources) && IsUnseen(p) {
		return Verdict{Why: "the kubelet has not seen the change yet"}
	}
	metas := runtimeMeta(p)
	// Once the Pod is back in service, a label or annotation that is changed on it by hand is no update.
	environment := state.UpdateEnvFromMetadata && !isInService(p)
	for _, batch := range state.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			if environment {
				if verdict := environmentProgress(p, metas, name); !verdict.Done {
					return verdict
				}
			}
			if state.UpdateResources && o.VerticalScaling {
				if verdict := resizeProgress(p, name); !verdict.Done {
					return verdict
				}
			}
		}
	}
	if len(state.LastContainerStatuses) == 0 || runsAsSpecified(p) {
		return Verdict{Done: true}
	}
	for _, name := range slices.Sorted(maps.Keys(state.LastContainerStatuses)) {
		if verdict := ImageProgress(p, name, state.LastContainerStatuses[name]); !verdict.Done {
			return verdict
		}
	}
	return Verdict{Done: true}
}

// WithNewEnvironment returns the containers for whose environment the update of the Pod waits: those that it has changed so far, if it
// changes labels or annotations that an environment takes.
func WithNewEnvironment(p *corev1.Pod) []string {
	state, err := State(p)
	if state == nil || err != nil || !state.UpdateEnvFromMetadata {
		return nil
	}
	var names []string
	for _, batch := range state.ContainerBatchesRecord {
		names = append(names, batch.Containers...)
	}
	return names
}

// IsUnseen reports whether the Pod's spec has changed since the kubelet last wrote its status. Kubelets before 1.33 do not say.
func IsUnseen(p *corev1.Pod) bool {
	return p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration < p.Generation
}

// NeedsFinish reports whether the Pod is kept out of service by the gate of in-place updates.
func NeedsFinish(p *corev1.Pod) bool {
	c := pod.Condition(p, pub.InPlaceUpdateReady)
	return pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && (c == nil || c.Status != corev1.ConditionTrue)
}

// Finish lets the Pod back into service; a new Pod gets its first readiness in the same way.
func Finish(p *corev1.Pod, now time.Time) {
	if NeedsFinish(p) {
		pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue}, now)
	}
}

// isInService reports whether the Pod has the gate of in-place updates, and that lets it be in service.
func isInService(p *corev1.Pod) bool {
	c := pod.Condition(p, pub.InPlaceUpdateReady)
	return pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && c != nil && c.Status == corev1.ConditionTrue
}

// isHeldOut reports whether the gate of in-place updates keeps the Pod out of service.
func isHeldOut(p *corev1.Pod) bool {
	c := pod.Condition(p, pub.InPlaceUpdateReady)
	return c != nil && c.Status == corev1.ConditionFalse
}
