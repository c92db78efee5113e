package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

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
	if !runsAsSpecified(p) {
		u.restarting = maps.Clone(state.LastContainerStatuses)
		maps.DeleteFunc(u.restarting, func(name string, last pub.InPlaceUpdateContainerStatus) bool {
			return ImageProgress(p, name, last).Done
		})
		if len(u.restarting) == 0 {
			u.restarting = nil // null and {} are not the same bytes on a Pod
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
		on, former, changed := container.Resources, u.resources[container.Name], c.Resources[container.Name]
		limits := resourceChanges(on.Limits, former.Limits, changed.Limits)
		requests := resourceChanges(on.Requests, former.Requests, changed.Requests)
		if len(limits)+len(requests) > 0 {
			d.resources[container.Name] = corev1.ResourceRequirements{Limits: limits, Requests: requests}
		}
	}
	former := u.patch.Metadata
	labels := keyChanges(p.Labels, u.pending(former.Labels, labelsOf), c.Labels)
	annotations := keyChanges(p.Annotations, u.pending(former.Annotations, annotationsOf), c.Annotations)
	d.deferReferenced(labels, annotations, u.metadata)
	d.deferReferenced(labels, annotations, c.RefMetadata)
	kept := metav1.ObjectMeta{Labels: unchanged(p.Labels, labels), Annotations: unchanged(p.Annotations, annotations)}
	d.deferStale(p, kept, u.metadata)
	d.deferStale(p, kept, c.RefMetadata)
	d.patch.Metadata = patchedMetadata{
		Labels:      notDeferred(labels, d.metadata, labelsOf),
		Annotations: notDeferred(annotations, d.metadata, annotationsOf),
	}
	d.patch.Metadata.Finalizers, d.patch.Metadata.RemoveFinalizers = finalizerChanges(former, c)
	return d
}

func labelsOf(m metav1.ObjectMeta) map[string]string { return m.Labels }

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
				into = merge(into, map[string]string{key: *value})
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

// unchanged returns the labels or annotations of the Pod that the changes leave as they are.
func unchanged(on map[string]string, changes map[string]*string) map[string]string {
	out := maps.Clone(on)
	maps.DeleteFunc(out, func(key, _ string) bool { _, ok := changes[key]; return ok })
	return out
}

// deferStale notes what a container has yet to be restarted with although the Pod has it already, and keeps it: somebody else has written
// it there.
func (d *todo) deferStale(p *corev1.Pod, kept metav1.ObjectMeta, references map[string]metav1.ObjectMeta) {
	metas := runtimeMeta(p)
	present := func(on, wanted map[string]string) map[string]string {
		out := maps.Clone(wanted)
		maps.DeleteFunc(out, func(key, value string) bool { has, ok := on[key]; return !ok || has != value })
		return out
	}
	for name, reference := range references {
		if !pod.HasReadinessGate(p, pub.InPlaceUpdateReady) || !runsWithOthers(p, metas, name) {
			continue
		}
		meta := d.metadata[name]
		meta.Labels = merge(meta.Labels, present(kept.Labels, reference.Labels))
		meta.Annotations = merge(meta.Annotations, present(kept.Annotations, reference.Annotations))
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
	wanted := merge(former.DeepCopy(), changes)
	maps.DeleteFunc(wanted, func(name corev1.ResourceName, value resource.Quantity) bool {
		actual, ok := on[name]
		return ok && actual.Cmp(value) == 0
	})
	return wanted
}

// merge returns a map with the changes written over it.
func merge[M ~map[K]V, K comparable, V any](on, changes M) M {
	if on == nil && len(changes) > 0 {
		on = M{}
	}
	maps.Copy(on, changes)
	return on
}

// keyChanges joins what a former update has not written yet with what a template changes, and returns what that changes on the Pod. A key
// that somebody else has set on the Pod since is left alone: neither template's value is there then.
func keyChanges(on map[string]string, former map[string]*string, changes map[string]Value) map[string]*string {
	valueOf := func(key string) *string {
		if value, ok := on[key]; ok {
			return &value
		}
		return nil
	}
	out := map[string]*string{}
	maps.Copy(out, former)
	for key, change := range changes {
		value, pending := former[key]
		if !pending {
			value = valueOf(key)
		}
		if ptr.Equal(value, change.Old) {
			out[key] = change.New
		}
	}
	maps.DeleteFunc(out, func(key string, value *string) bool { return ptr.Equal(valueOf(key), value) })
	return out
}

// finalizerChanges joins the finalizers that a former update has not added or removed yet with those of a change.
func finalizerChanges(former patchedMetadata, c Change) (add, remove []string) {
	but := func(list, without []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return slices.Contains(without, f) })
	}
	add = append(but(former.Finalizers, slices.Concat(c.RemoveFinalizers, c.AddFinalizers)), c.AddFinalizers...)
	remove = append(but(former.RemoveFinalizers, slices.Concat(c.AddFinalizers, c.RemoveFinalizers)), c.RemoveFinalizers...)
	return add, remove
}

// metadataPatch is a strategic merge patch of labels, annotations and finalizers; a nil value removes a key.
//
// Wire: it is stored within the planned update.
type metadataPatch struct {
	Metadata patchedMetadata `json:"metadata"`
}

type patchedMetadata struct {
	Labels           map[string]*string `json:"labels,omitempty"`
	Annotations      map[string]*string `json:"annotations,omitempty"`
	Finalizers       []string           `json:"finalizers,omitempty"`
	RemoveFinalizers []string           `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

// encode returns the patch as bytes, nil for an empty one.
func (m metadataPatch) encode() []byte {
	d := m.Metadata
	if len(d.Labels)+len(d.Annotations)+len(d.Finalizers)+len(d.RemoveFinalizers) == 0 {
		return nil
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encoding a metadata patch: %v", err)) // strings can be encoded
	}
	return encoded
}

func decodeMetadataPatch(data []byte) (metadataPatch, error) {
	var m metadataPatch
	if len(data) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return metadataPatch{}, fmt.Errorf("reading the metadata patch: %w", err)
	}
	return m, nil
}

func (m metadataPatch) apply(p *corev1.Pod) {
	p.Labels = applyMap(p.Labels, m.Metadata.Labels)
	p.Annotations = applyMap(p.Annotations, m.Metadata.Annotations)
	p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return slices.Contains(m.Metadata.RemoveFinalizers, f) })
	for _, f := range m.Metadata.Finalizers {
		if !slices.Contains(p.Finalizers, f) {
			p.Finalizers = append(p.Finalizers, f)
		}
	}
}

func applyMap(on map[string]string, changes map[string]*string) map[string]string {
	for key, value := range changes {
		if value == nil {
			delete(on, key)
			continue
		}
		on = merge(on, map[string]string{key: *value})
	}
	return on
}
