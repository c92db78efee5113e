package inplace

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// Planned is an update that has not touched the Pod's spec yet.
//
// Wire: it is stored as JSON in an annotation; other software reads it and goes on from it.
type Planned struct {
	Revision              string                                 `json:"revision"`
	ContainerImages       map[string]string                      `json:"containerImages,omitempty"`
	ContainerRefMetadata  map[string]metav1.ObjectMeta           `json:"containerRefMetadata,omitempty"`
	ContainerResources    map[string]corev1.ResourceRequirements `json:"containerResources,omitempty"`
	MetaDataPatch         []byte                                 `json:"metaDataPatch,omitempty"`
	UpdateEnvFromMetadata bool                                   `json:"updateEnvFromMetadata,omitempty"`
	GraceSeconds          int32                                  `json:"graceSeconds,omitempty"`
}

// State returns the record of the Pod's last in-place update; nil when there was none.
func State(pod *corev1.Pod) (*pub.InPlaceUpdateState, error) {
	state := &pub.InPlaceUpdateState{}
	found, err := read(pod, state, keys.InPlaceUpdateState, keys.InPlaceUpdateStateOld)
	if !found || err != nil {
		return nil, err
	}
	return state, nil
}

// Plan returns the update that is planned and has not touched the Pod's spec yet; nil when there is none.
func Plan(pod *corev1.Pod) (*Planned, error) {
	planned := &Planned{}
	found, err := read(pod, planned, keys.InPlaceUpdateGrace, keys.InPlaceUpdateGraceOld)
	if !found || err != nil {
		return nil, err
	}
	return planned, nil
}

// Pending reports whether an update is planned that has not touched the Pod's spec yet.
func Pending(pod *corev1.Pod) bool {
	_, pending := pod.Annotations[keys.InPlaceUpdateGrace]
	_, older := pod.Annotations[keys.InPlaceUpdateGraceOld]
	return pending || older
}

func read(pod *corev1.Pod, into any, spellings ...string) (bool, error) {
	for _, key := range spellings {
		if text, ok := pod.Annotations[key]; ok {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return true, fmt.Errorf("reading annotation %s: %w", key, err)
			}
			return true, nil
		}
	}
	return false, nil
}

func writeState(pod *corev1.Pod, state *pub.InPlaceUpdateState) {
	write(pod, state, keys.InPlaceUpdateState)
	delete(pod.Annotations, keys.InPlaceUpdateStateOld)
}

func writePlan(pod *corev1.Pod, planned *Planned) {
	write(pod, planned, keys.InPlaceUpdateGrace)
	delete(pod.Annotations, keys.InPlaceUpdateGraceOld)
}

func dropPlan(pod *corev1.Pod) {
	delete(pod.Annotations, keys.InPlaceUpdateGrace)
	delete(pod.Annotations, keys.InPlaceUpdateGraceOld)
}

func dropState(pod *corev1.Pod) {
	delete(pod.Annotations, keys.InPlaceUpdateState)
	delete(pod.Annotations, keys.InPlaceUpdateStateOld)
}

func write(pod *corev1.Pod, value any, key string) {
	text, err := json.Marshal(value)
	if err != nil {
		// Strings, times and quantities: the types have no value that can't be encoded.
		panic(fmt.Sprintf("encoding annotation %s: %v", key, err))
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = string(text)
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
		if on == nil {
			on = map[string]string{}
		}
		on[key] = *value
	}
	return on
}

// keyChanges joins what a former update has not written yet with what a template changes, and returns what that changes on the Pod. A key
// that somebody else has set on the Pod since is left alone: neither template's value is there then.
func keyChanges(on map[string]string, former map[string]*string, changes map[string]Value) map[string]*string {
	out := map[string]*string{}
	for key, value := range former {
		out[key] = value
	}
	for key, change := range changes {
		value, pending := former[key]
		if !pending {
			value = valueOf(on, key)
		}
		if same(value, change.Old) {
			out[key] = change.New
		}
	}
	for key, value := range out {
		if same(valueOf(on, key), value) {
			delete(out, key)
		}
	}
	return out
}

func valueOf(m map[string]string, key string) *string {
	if value, ok := m[key]; ok {
		return &value
	}
	return nil
}

func same(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
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
