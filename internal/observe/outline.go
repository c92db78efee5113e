package observe

import (
	"encoding/binary"
	"fmt"
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// outline is what a cache holds of a Pod that is read, but not managed: what identifies it, where it runs, what its containers are doing,
// and annotations that are read. A corev1.Pod takes 1,280 bytes before there is anything in it, and a cluster has such Pods by the hundred
// thousand. So what a Pod has alone is held encoded, and what it has in common with others of its template is held once.
//
// A cache of outlines returns Pods: see NewInformer.
type outline struct {
	from  *outliner
	shape *shape
	// own is a corev1.Pod, encoded, without what is in the shape.
	own []byte
	// turn says where the Pod of the outline is kept for a while once it was read.
	turn uint32
	// ownLabels and ownAnnotations mean that all of them are in own; otherwise only those that the shape does not have.
	ownLabels, ownAnnotations bool
}

var _ interface {
	runtime.Object
	metav1.ObjectMetaAccessor
} = &outline{}

// shape is what the Pods of one template have in common. Labels and annotations are those of the first Pod, of which others may have more,
// or others: a StatefulSet labels each Pod with its name, and a network plugin writes its addresses to it.
type shape struct {
	namespace                  string
	labels, annotations        map[string]string
	owners                     []metav1.OwnerReference
	containers, initContainers []corev1.Container
	gates                      []corev1.PodReadinessGate
	images, initImages         []image
}

// image is what a container runs.
type image struct{ container, name, id string }

// outliner makes outlines.
type outliner struct {
	interner
	made uint32
	// recent are Pods that were read of late, some 5 MB of them: for one event, indexes and a dozen watchers read the same one, and while a
	// workload changes all of its Pods are read again and again.
	recent [2048]atomic.Pointer[reading]
}

// reading is an outline, and the Pod that was read from it.
type reading struct {
	of  *outline
	pod *corev1.Pod
}

// outline returns what is read of Pods of any kind: by requests to recreate their containers, by probes, and by jobs that add ephemeral
// containers.
func (o *outliner) outline(p *corev1.Pod, annotations map[string]string) (*outline, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made++
	out := &outline{from: o, shape: o.shapeOf(p, annotations), turn: o.made}
	own := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, EphemeralContainers: p.Spec.EphemeralContainers},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs, Conditions: conditionsOf(p),
			ContainerStatuses:          statusesOf(p.Status.ContainerStatuses),
			InitContainerStatuses:      statusesOf(p.Status.InitContainerStatuses),
			EphemeralContainerStatuses: p.Status.EphemeralContainerStatuses,
		},
	}
	own.Labels, out.ownLabels = besides(out.shape.labels, p.Labels)
	own.Annotations, out.ownAnnotations = besides(out.shape.annotations, annotations)
	var err error
	if out.own, err = own.Marshal(); err != nil {
		return nil, fmt.Errorf("encoding pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	out.complete(&own) // a store is about to read it
	return out, nil
}

// besides returns those of a Pod's labels or annotations that are not among the common ones, or all of them if the Pod lacks any of those.
func besides(common, values map[string]string) (own map[string]string, all bool) {
	for key := range common {
		if _, has := values[key]; !has {
			return values, true
		}
	}
	for key, value := range values {
		if held, has := common[key]; !has || held != value {
			if own == nil {
				own = map[string]string{}
			}
			own[key] = value
		}
	}
	return own, false
}

// together returns what besides was given.
func together(common, own map[string]string, all bool) map[string]string {
	switch {
	case all || len(common) == 0:
		return own
	case len(own) == 0:
		return common
	}
	out := make(map[string]string, len(common)+len(own))
	maps.Copy(out, common)
	maps.Copy(out, own)
	return out
}

// conditionsOf returns the conditions of a Pod that are read. Those that every Pod in good health has say nothing that its phase does not,
// but for a Pod with readiness gates, to which our controllers may write.
func conditionsOf(p *corev1.Pod) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionTrue && len(p.Spec.ReadinessGates) == 0 && isImplied(c.Type, p.Status.Phase) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// isImplied reports whether nothing reads that a condition is True, or whether it follows from the Pod's phase.
func isImplied(condition corev1.PodConditionType, phase corev1.PodPhase) bool {
	switch condition {
	case corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.ContainersReady:
		return true
	case corev1.PodInitialized:
		return phase == corev1.PodRunning
	}
	return false
}

// statusesOf returns what is read of the statuses of containers: since when they run, and how those before them ended. What they run is in
// the shape.
func statusesOf(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(statuses))
	for at := range statuses {
		s := &statuses[at]
		out[at] = corev1.ContainerStatus{
			State: s.State, LastTerminationState: s.LastTerminationState, Ready: s.Ready, RestartCount: s.RestartCount,
			ContainerID: s.ContainerID,
		}
	}
	return out
}

// pod returns the Pod that the outline is of. It must not be changed: others may be reading it.
func (o *outline) pod() *corev1.Pod {
	if r := o.recent().Load(); r != nil && r.of == o {
		return r.pod
	}
	p := &corev1.Pod{}
	mustDecode(p, o.own)
	o.complete(p)
	return p
}

// recent is where the Pod of the outline is kept for a while.
func (o *outline) recent() *atomic.Pointer[reading] {
	return &o.from.recent[o.turn%uint32(len(o.from.recent))]
}

// complete adds to what a Pod has alone what it has in common with others, and keeps it for a while.
func (o *outline) complete(p *corev1.Pod) {
	o.completeMeta(&p.ObjectMeta)
	p.Spec.Containers, p.Spec.InitContainers, p.Spec.ReadinessGates = o.shape.containers, o.shape.initContainers, o.shape.gates
	addImages(p.Status.ContainerStatuses, o.shape.images)
	addImages(p.Status.InitContainerStatuses, o.shape.initImages)
	o.recent().Store(&reading{of: o, pod: p})
}

func (o *outline) completeMeta(m *metav1.ObjectMeta) {
	m.Namespace, m.OwnerReferences = o.shape.namespace, o.shape.owners
	m.Labels = together(o.shape.labels, m.Labels, o.ownLabels)
	m.Annotations = together(o.shape.annotations, m.Annotations, o.ownAnnotations)
}

// mustDecode decodes what was encoded here, which only damaged memory can make impossible.
func mustDecode(into interface{ Unmarshal(encoded []byte) error }, encoded []byte) {
	if err := into.Unmarshal(encoded); err != nil {
		panic(fmt.Errorf("decoding what was encoded: %w", err))
	}
}

func addImages(statuses []corev1.ContainerStatus, images []image) {
	for at := range statuses {
		statuses[at].Name, statuses[at].Image, statuses[at].ImageID = images[at].container, images[at].name, images[at].id
	}
}

// GetObjectMeta returns the metadata of the Pod, by which stores know where it belongs. A store asks for that of all Pods once they are
// listed, for which the rest of them need not be decoded.
func (o *outline) GetObjectMeta() metav1.Object {
	if r := o.recent().Load(); r != nil && r.of == o {
		return r.pod
	}
	// The metadata are the first field of an encoded Pod: the number of the field, the length of the metadata, the metadata.
	length, read := binary.Uvarint(o.own[1:])
	m := &metav1.ObjectMeta{}
	mustDecode(m, o.own[1+read:][:length])
	o.completeMeta(m)
	return m
}

// GetObjectKind says nothing: objects in caches have no kind.
func (o *outline) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns a Pod, which may be changed.
func (o *outline) DeepCopyObject() runtime.Object { return o.pod().DeepCopy() }
