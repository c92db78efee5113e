package inplace

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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

// keyChanges joins what a former update has not written yet with what a template changes, and returns what that changes on the Pod. A key that
// somebody else has set on the Pod since is left alone: neither template's value is there then.
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
