package inplace

import (
	"encoding/json"
	"fmt"

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
