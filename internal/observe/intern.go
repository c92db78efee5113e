package observe

import (
	"crypto/sha256"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// internedTexts is how many texts an interner holds of late; it may hold as many again of those before. A list comes in the order of
	// names, so that Pods of one template come one after the other.
	internedTexts = 1 << 12
	// internedText is the size, in bytes, up to which texts are held, so that an interner stays below some megabytes whatever Pods have.
	internedText = 512
)

// interner keeps one copy of what many Pods have in common. A Pod as it is decoded has a copy of each of its strings. What it returns must
// not be changed, as nothing may that a cache holds.
type interner struct {
	mu  sync.Mutex
	key []byte // is built anew for each value; a lookup by it allocates nothing
	// shapes are those in use, by a hash of their contents, which themselves would take as much as the shapes.
	shapes map[[sha256.Size]byte]weak.Pointer[shape]
	held   recent[string, string]
	// parts are pointers to parts of Pods that are held whole, by a hash of their contents.
	parts recent[[sha256.Size]byte, any]
}

// recent holds values that have come of late. One that has not come for a long time is forgotten: Pods that have it keep it, and Pods that
// come later share another copy.
type recent[K comparable, V any] struct{ young, old map[K]V }

func (r *recent[K, V]) get(key K) (V, bool) {
	value, ok := r.young[key]
	if !ok {
		value, ok = r.old[key]
	}
	return value, ok
}

// keep holds a value from now on. When there are as many as most, they begin to be forgotten.
func (r *recent[K, V]) keep(key K, value V, most int) {
	if _, ok := r.young[key]; ok {
		return
	}
	if len(r.young) >= most {
		r.old, r.young = r.young, nil
	}
	if r.young == nil {
		r.young = map[K]V{}
	}
	r.young[key] = value
}

// text returns the copy of a string that is held; a long one is not.
func (i *interner) text(s string) string {
	if s == "" || len(s) > internedText {
		return s
	}
	held, ok := i.held.get(s)
	if !ok {
		held = string([]byte(s)) // a copy of its own: a string that was decoded may be a part of something larger
	}
	i.held.keep(held, held, internedTexts)
	return held
}

// textsIn returns labels or annotations of which each text is the copy that is held.
func (i *interner) textsIn(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	out := make(map[string]string, len(values))
	for name, value := range values {
		out[i.text(name)] = i.text(value)
	}
	return out
}

// write adds strings to the key, with their lengths, so that no two lists of strings have the same key.
func (i *interner) write(parts ...string) {
	for _, s := range parts {
		i.count(len(s))
		i.key = append(i.key, s...)
	}
}

// count adds to the key how many things follow.
func (i *interner) count(things int) {
	i.key = append(strconv.AppendInt(i.key, int64(things), 10), ':')
}

// shapeOf returns the copy of a Pod's shape that is in use. The Pod that it is made for gives it its labels, and the annotations.
func (i *interner) shapeOf(p *corev1.Pod, annotations map[string]string) *shape {
	i.key = i.key[:0]
	i.write(p.Namespace)
	i.writeOwners(p.OwnerReferences)
	i.writeContainers(p.Spec.InitContainers)
	i.writeContainers(p.Spec.Containers)
	i.writeImages(p.Status.InitContainerStatuses)
	i.writeImages(p.Status.ContainerStatuses)
	for _, g := range p.Spec.ReadinessGates {
		i.write(string(g.ConditionType))
	}
	hash := sha256.Sum256(i.key)
	if held := i.shapes[hash].Value(); held != nil {
		return held
	}
	made := &shape{
		namespace: i.text(p.Namespace), owners: p.OwnerReferences, gates: p.Spec.ReadinessGates,
		labels: i.textsIn(p.Labels), annotations: i.textsIn(annotations),
		containers: i.outlines(p.Spec.Containers), initContainers: i.outlines(p.Spec.InitContainers),
		images: i.imagesOf(p.Status.ContainerStatuses), initImages: i.imagesOf(p.Status.InitContainerStatuses),
	}
	if i.shapes == nil {
		i.shapes = map[[sha256.Size]byte]weak.Pointer[shape]{}
	}
	i.shapes[hash] = weak.Make(made)
	runtime.AddCleanup(made, i.forget, hash)
	return made
}

// forget drops a shape that no Pod has any more.
func (i *interner) forget(hash [sha256.Size]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shapes[hash].Value() == nil { // not if it was made again meanwhile
		delete(i.shapes, hash)
	}
}

func (i *interner) writeOwners(owners []metav1.OwnerReference) {
	i.count(len(owners))
	for _, o := range owners {
		i.write(o.APIVersion, o.Kind, o.Name, string(o.UID), flag(o.Controller), flag(o.BlockOwnerDeletion))
	}
}

// writeContainers adds to the key what outlines leaves of containers.
func (i *interner) writeContainers(containers []corev1.Container) {
	i.count(len(containers))
	for at := range containers {
		c := &containers[at]
		policy := ""
		if c.RestartPolicy != nil {
			policy = string(*c.RestartPolicy)
		}
		i.write(c.Name, c.Image, policy)
		i.count(len(c.Ports))
		for _, p := range c.Ports {
			i.write(p.Name, string(p.Protocol), p.HostIP, strconv.Itoa(int(p.ContainerPort)), strconv.Itoa(int(p.HostPort)))
		}
	}
}

// outlines returns what is read of the spec of containers.
func (i *interner) outlines(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for at := range containers {
		c := &containers[at]
		out = append(out, corev1.Container{Name: i.text(c.Name), Image: i.text(c.Image), Ports: c.Ports, RestartPolicy: c.RestartPolicy})
	}
	return slices.Clip(out)
}

func (i *interner) writeImages(statuses []corev1.ContainerStatus) {
	i.count(len(statuses))
	for at := range statuses {
		i.write(statuses[at].Name, statuses[at].Image, statuses[at].ImageID)
	}
}

// imagesOf returns what containers run.
func (i *interner) imagesOf(statuses []corev1.ContainerStatus) []image {
	out := make([]image, len(statuses))
	for at := range statuses {
		s := &statuses[at]
		out[at] = image{container: i.text(s.Name), name: i.text(s.Image), id: i.text(s.ImageID)}
	}
	return out
}

func flag(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}
