package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
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
func State(p *corev1.Pod) (*pub.InPlaceUpdateState, error) {
	return read[pub.InPlaceUpdateState](p, keys.InPlaceUpdateState, keys.InPlaceUpdateStateOld)
}

// Plan returns the update that is planned and has not touched the Pod's spec yet; nil when there is none.
func Plan(p *corev1.Pod) (*Planned, error) {
	return read[Planned](p, keys.InPlaceUpdateGrace, keys.InPlaceUpdateGraceOld)
}

// Pending reports whether an update is planned that has not touched the Pod's spec yet.
func Pending(p *corev1.Pod) bool {
	_, pending := p.Annotations[keys.InPlaceUpdateGrace]
	_, older := p.Annotations[keys.InPlaceUpdateGraceOld]
	return pending || older
}

// read decodes the first of the annotations that the Pod has; nil when it has none.
func read[T any](p *corev1.Pod, spellings ...string) (*T, error) {
	for _, key := range spellings {
		if text, ok := p.Annotations[key]; ok {
			value := new(T)
			if err := json.Unmarshal([]byte(text), value); err != nil {
				return nil, fmt.Errorf("reading annotation %s: %w", key, err)
			}
			return value, nil
		}
	}
	return nil, nil
}

func writeState(p *corev1.Pod, state *pub.InPlaceUpdateState) {
	dropState(p)
	write(p, state, keys.InPlaceUpdateState)
}

func writePlan(p *corev1.Pod, planned *Planned) {
	dropPlan(p)
	write(p, planned, keys.InPlaceUpdateGrace)
}

func dropPlan(p *corev1.Pod) {
	delete(p.Annotations, keys.InPlaceUpdateGrace)
	delete(p.Annotations, keys.InPlaceUpdateGraceOld)
}

func dropState(p *corev1.Pod) {
	delete(p.Annotations, keys.InPlaceUpdateState)
	delete(p.Annotations, keys.InPlaceUpdateStateOld)
}

func write(p *corev1.Pod, value any, key string) {
	text, err := json.Marshal(value)
	if err != nil {
		// Strings, times and quantities: the types have no value that can't be encoded.
		panic(fmt.Sprintf("encoding annotation %s: %v", key, err))
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = string(text)
}

func hasNext(state *pub.InPlaceUpdateState) bool { return len(touchedNext(state)) > 0 }

// touchedNext returns the containers that further batches change, sorted.
func touchedNext(state *pub.InPlaceUpdateState) []string {
	names := slices.Collect(maps.Keys(state.NextContainerImages))
	names = slices.AppendSeq(names, maps.Keys(state.NextContainerResources))
	names = slices.AppendSeq(names, maps.Keys(state.NextContainerRefMetadata))
	slices.Sort(names)
	return slices.Compact(names)
}

// nextBatch returns, sorted, the containers that change together next: those without a launch priority, those of the highest priority, and
// whichever take a label or annotation that one of these takes as well. With the priorities sidecar 10 and main 0, sidecar is the first
// batch and main the second; when both take the annotation app-config, and that changes, they are one batch.
func nextBatch(p *corev1.Pod, state *pub.InPlaceUpdateState) []string {
	touched := touchedNext(state)
	priorities, highest := map[string]int32{}, int32(math.MinInt32)
	for _, name := range touched {
		if container := pod.Container(p, name); container != nil {
			if priority, ok := launch.Priority(container); ok {
				priorities[name], highest = priority, max(highest, priority)
			}
		}
	}
	chosen := map[string]bool{}
	for _, name := range touched {
		priority, has := priorities[name]
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

// sharesKey reports whether a container takes a label or annotation that one of the chosen takes as well.
func sharesKey(meta map[string]metav1.ObjectMeta, name string, chosen map[string]bool) bool {
	shared := func(a, b map[string]string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(key string) bool { _, ok := b[key]; return ok })
	}
	mine := meta[name]
	for other, theirs := range meta {
		if chosen[other] && (shared(mine.Labels, theirs.Labels) || shared(mine.Annotations, theirs.Annotations)) {
			return true
		}
	}
	return false
}
