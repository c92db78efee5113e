package inplace

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// startReason is why the readiness gate is False during an update.
const startReason = "StartInPlaceUpdate"

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

// todo is what an update has to write to a Pod.
type todo struct {
	images    map[string]string
	resources map[string]corev1.ResourceRequirements
	// metadata are the labels and annotations that are written when a container restarts, by container; patch is written at once.
	metadata map[string]metav1.ObjectMeta
	patch    metadataPatch
}

func (d todo) touchesContainers() bool {
	return len(d.images)+len(d.resources)+len(d.metadata) > 0
}

// restarts reports whether a container restarts: a mere resize does not disturb the service.
func (d todo) restarts(p *corev1.Pod) bool {
	if len(d.images)+len(d.metadata) > 0 {
		return true
	}
	for name, changed := range d.resources {
		if container := pod.Container(p, name); container != nil && restartsForResize(container, changed) {
			return true
		}
	}
	return false
}

// unfinished is what the update before has not done on a Pod. The Pod's labels say the revision of that update from its start, so that the
// change to the next revision says nothing of this.
type unfinished struct {
	todo
	grace int32
	// restarting are the containers that don't run the image of their spec yet.
	restarting map[string]pub.InPlaceUpdateContainerStatus
	// batches hold the containers that don't run with their environment or resources yet.
	batches             []pub.InPlaceUpdateContainerBatch
	environment, resize bool
	// unseen means that the kubelet has not seen the last change of the spec.
	unseen bool
}

// unfinishedOn reads what is unfinished from the Pod. Records that can't be read are no guide; Advance removes and reports them.
func unfinishedOn(p *corev1.Pod) unfinished {
	var u unfinished
	state, err := State(p)
	if state != nil && err == nil {
		u.images, u.resources, u.metadata = state.NextContainerImages, state.NextContainerResources, state.NextContainerRefMetadata
		u.readProgress(p, state)
	}
	planned, err := Plan(p)
	if planned == nil || err != nil {
		return u
	}
	u.images, u.resources, u.metadata = planned.ContainerImages, planned.ContainerResources, planned.ContainerRefMetadata
	u.grace = planned.GraceSeconds
	if patch, err := decodeMetadataPatch(planned.MetaDataPatch); err == nil {
		u.patch = patch
	}
	return u
}

// readProgress takes those containers that were changed and do not run as they should.
func (u *unfinished) readProgress(p *corev1.Pod, state *pub.InPlaceUpdateState) {
	u.unseen = (state.UpdateImages || state.UpdateResources) && IsUnseen(p)
	if len(state.LastContainerStatuses) > 0 && !runsAsSpecified(p) {
		for name, last := range state.LastContainerStatuses {
			if ImageProgress(p, name, last).Done {
				continue
			}
			if u.restarting == nil {
				u.restarting = map[string]pub.InPlaceUpdateContainerStatus{}
			}
			u.restarting[name] = last
		}
	}
	metas := runtimeMeta(p)
	for _, batch := range state.ContainerBatchesRecord {
		var names []string
		for _, name := range batch.Containers {
			environment := state.UpdateEnvFromMetadata && !environmentProgress(p, metas, name).Done
			resize := state.UpdateResources && !resizeProgress(p, name).Done
			if environment || resize {
				names = append(names, name)
			}
			u.environment, u.resize = u.environment || environment, u.resize || resize
		}
		if len(names) > 0 {
			u.batches = append(u.batches, pub.InPlaceUpdateContainerBatch{Timestamp: batch.Timestamp, Containers: names})
		}
	}
}

// with returns what is to be written to the Pod for the unfinished update and the change after it. What is on the Pod already is left out.
func (u unfinished) with(p *corev1.Pod, c Change) todo {
	d := todo{
		images:    map[string]string{},
		resources: map[string]corev1.ResourceRequirements{},
		metadata:  map[string]metav1.ObjectMeta{},
	}
	for i := range p.Spec.Containers {
		container := &p.Spec.Containers[i]
		image, ok := c.Images[container.Name]
		if !ok {
			image, ok = u.images[container.Name]
		}
		if ok && image != container.Image {
			d.images[container.Name] = image
		}
		limits := resourceChanges(container.Resources.Limits, u.resources[container.Name].Limits, c.Resources[container.Name].Limits)
		requests := resourceChanges(container.Resources.Requests, u.resources[container.Name].Requests, c.Resources[container.Name].Requests)
		if len(limits)+len(requests) > 0 {
			d.resources[container.Name] = corev1.ResourceRequirements{Limits: limits, Requests: requests}
		}
	}
	former := u.patch.Metadata
	labels := keyChanges(p.Labels, u.pending(former.Labels, labelsOf), c.Labels)
	annotations := keyChanges(p.Annotations, u.pending(former.Annotations, annotationsOf), c.Annotations)
	d.deferReferenced(labels, annotations, u.metadata)
	d.deferReferenced(labels, annotations, c.RefMetadata)
	d.patch.Metadata = patchedMetadata{
		Labels:      notDeferred(labels, d.metadata, labelsOf),
		Annotations: notDeferred(annotations, d.metadata, annotationsOf),
	}
	d.patch.Metadata.Finalizers, d.patch.Metadata.RemoveFinalizers = finalizerChanges(former, c)
	return d
}

func labelsOf(m metav1.ObjectMeta) map[string]string      { return m.Labels }
func annotationsOf(m metav1.ObjectMeta) map[string]string { return m.Annotations }

// pending joins a patch with the keys that wait for their containers.
func (u unfinished) pending(patch map[string]*string, side func(metav1.ObjectMeta) map[string]string) map[string]*string {
	out := map[string]*string{}
	maps.Copy(out, patch)
	for _, meta := range u.metadata {
		for key, value := range side(meta) {
			out[key] = &value
		}
	}
	return out
}

// deferReferenced notes those changes that containers take into their environment, by container. A removed key is removed at once.
func (d *todo) deferReferenced(labels, annotations map[string]*string, references map[string]metav1.ObjectMeta) {
	join := func(into map[string]string, keys map[string]string, changes map[string]*string) map[string]string {
		for key := range keys {
			if value := changes[key]; value != nil {
				if into == nil {
					into = map[string]string{}
				}
				into[key] = *value
			}
		}
		return into
	}
	for name, reference := range references {
		meta := d.metadata[name]
		meta.Labels = join(meta.Labels, reference.Labels, labels)
		meta.Annotations = join(meta.Annotations, reference.Annotations, annotations)
		if len(meta.Labels)+len(meta.Annotations) > 0 {
			d.metadata[name] = meta
		}
	}
}

func notDeferred(
	changes map[string]*string, metadata map[string]metav1.ObjectMeta, side func(metav1.ObjectMeta) map[string]string,
) map[string]*string {
	metas := slices.Collect(maps.Values(metadata))
	maps.DeleteFunc(changes, func(key string, _ *string) bool {
		return slices.ContainsFunc(metas, func(m metav1.ObjectMeta) bool { _, ok := side(m)[key]; return ok })
	})
	return changes
}

// resourceChanges returns those values, the later ones of a change or else those of a former one, that are not on the container.
func resourceChanges(on, former, changes corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	wanted := merge(former.DeepCopy(), changes)
	for name, value := range wanted {
		if actual, ok := on[name]; ok && actual.Cmp(value) == 0 {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = value
	}
	return out
}

// isHeldOut reports whether the gate of in-place updates keeps the Pod out of service.
func isHeldOut(p *corev1.Pod) bool {
	c := pod.Condition(p, pub.InPlaceUpdateReady)
	return c != nil && c.Status == corev1.ConditionFalse
}
