package inplace

import (
	"encoding/json"
	"fmt"
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

// Begin changes the Pod such that it is out of service and carries the whole plan: what is left to do can be read from the Pod alone. A change
// that touches no container is done at once, and the Pod stays in service. An update that is under way is superseded.
func Begin(p *corev1.Pod, c Change, t Target) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	maps.Copy(p.Labels, t.Labels)
	dropPlan(p)
	state := &pub.InPlaceUpdateState{
		Revision:              t.Revision,
		UpdateTimestamp:       startOf(t),
		UpdateEnvFromMetadata: len(c.RefMetadata) > 0,
		UpdateResources:       len(c.Resources) > 0,
		UpdateImages:          len(c.Images) > 0,
	}
	writeState(p, state)
	patch := newMetadataPatch(p, c)
	if !c.TouchesContainers() {
		patch.apply(p)
		return
	}
	if pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && needsNotReady(p, c) {
		pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: startReason}, t.Now)
	}
	writePlan(p, &Planned{
		Revision:              t.Revision,
		ContainerImages:       c.Images,
		ContainerRefMetadata:  c.RefMetadata,
		ContainerResources:    c.Resources,
		MetaDataPatch:         patch.encode(),
		UpdateEnvFromMetadata: len(c.RefMetadata) > 0,
		GraceSeconds:          t.GraceSeconds,
	})
}

// startOf returns when the update began, in the precision of stored times: rounded up where a grace period is counted from it, so that the
// period is never short.
func startOf(t Target) metav1.Time {
	whole := t.Now.Truncate(time.Second)
	if t.GraceSeconds > 0 && whole.Before(t.Now) {
		whole = whole.Add(time.Second)
	}
	return metav1.NewTime(whole)
}

// needsNotReady reports whether a container restarts: a mere resize does not disturb the service.
func needsNotReady(p *corev1.Pod, c Change) bool {
	if len(c.Images)+len(c.RefMetadata) > 0 {
		return true
	}
	for name, changed := range c.Resources {
		if container := pod.Container(p, name); container != nil && restartsForResize(container, changed) {
			return true
		}
	}
	return false
}

// metadataPatch is a strategic merge patch of labels, annotations and finalizers; a nil value removes a key.
type metadataPatch struct {
	Metadata struct {
		Labels           map[string]*string `json:"labels,omitempty"`
		Annotations      map[string]*string `json:"annotations,omitempty"`
		Finalizers       []string           `json:"finalizers,omitempty"`
		RemoveFinalizers []string           `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
	} `json:"metadata"`
}

// newMetadataPatch keeps what a user has set on the Pod since: a key whose value is not the old template's is left alone.
func newMetadataPatch(p *corev1.Pod, c Change) metadataPatch {
	var m metadataPatch
	m.Metadata.Labels = untouched(p.Labels, c.Labels)
	m.Metadata.Annotations = untouched(p.Annotations, c.Annotations)
	m.Metadata.Finalizers, m.Metadata.RemoveFinalizers = c.AddFinalizers, c.RemoveFinalizers
	return m
}

func untouched(on map[string]string, changes map[string]Value) map[string]*string {
	out := map[string]*string{}
	for key, change := range changes {
		value, ok := on[key]
		sameAsOld := ok == (change.Old != nil) && (change.Old == nil || value == *change.Old)
		if sameAsOld {
			out[key] = change.New
		}
	}
	return out
}

func (m metadataPatch) isEmpty() bool {
	d := m.Metadata
	return len(d.Labels)+len(d.Annotations)+len(d.Finalizers)+len(d.RemoveFinalizers) == 0
}

// encode returns the patch as bytes, nil for an empty one.
func (m metadataPatch) encode() []byte {
	if m.isEmpty() {
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
		return m, fmt.Errorf("reading the metadata patch: %w", err)
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
