package launch

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// Opened returns the lowest priority whose key is in the barrier: by its annotation, so that its data need not be kept in memory, or, where
// other software has made it, by its data.
func Opened(barrier *corev1.ConfigMap) (int32, bool) {
	if priority, ok := priorityOf(barrier.Annotations[keys.ContainerLaunchPriorityCurrent]); ok {
		return priority, true
	}
	lowest, found := int32(0), false
	for key := range barrier.Data {
		if priority, ok := priorityOf(key); ok && (!found || priority < lowest) {
			lowest, found = priority, true
		}
	}
	return lowest, found
}

// Open puts the keys of a turn into a barrier. After the last turn nothing can change any more, and kubelets need not watch it.
func Open(barrier *corev1.ConfigMap, turn Turn) {
	if barrier.Labels == nil {
		barrier.Labels = map[string]string{}
	}
	barrier.Labels[keys.ContainerLaunchBarrier] = "true"
	if barrier.Annotations == nil {
		barrier.Annotations = map[string]string{}
	}
	barrier.Annotations[keys.ContainerLaunchPriorityCurrent] = Key(turn.Priority)
	barrier.Data = maps.Clone(barrier.Data)
	if barrier.Data == nil {
		barrier.Data = map[string]string{}
	}
	for _, key := range turn.Keys {
		barrier.Data[key] = "true"
	}
	if turn.Last {
		yes := true
		barrier.Immutable = &yes
	}
}

// NewBarrier returns the barrier of a Pod with the keys of a turn. It goes when the Pod does.
func NewBarrier(p *corev1.Pod, name string, turn Turn) *corev1.ConfigMap {
	barrier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: p.Name, UID: p.UID,
	}}}}
	Open(barrier, turn)
	return barrier
}

// Whose says to whom a ConfigMap with the name of a Pod's barrier belongs.
type Whose int

const (
	// Own means that it is the Pod's barrier.
	Own Whose = iota
	// Former means that it is the barrier of an earlier Pod of the same name: with its keys everything would start at once.
	Former
	// Foreign means that it is something else, which is not ours to touch.
	Foreign
)

// Belongs says to whom the ConfigMap belongs.
func Belongs(barrier *corev1.ConfigMap, p *corev1.Pod) Whose {
	former := len(barrier.OwnerReferences) > 0
	for _, ref := range barrier.OwnerReferences {
		if ref.UID == p.UID {
			return Own
		}
		former = former && ref.Kind == "Pod" && ref.Name == p.Name
	}
	if former {
		return Former
	}
	return Foreign
}
