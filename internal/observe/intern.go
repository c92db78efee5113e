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
	mu     sync.Mutex
	key    []byte // is built anew for each value; a lookup by it allocates nothing
	shapes table[shape]
	maps   table[texts]
	// young are the strings of late, old those before. One that has not come for a long time is forgotten: Pods that have it keep it, and
	// Pods that come later share another copy.
	young, old map[string]string
}

// texts are labels or annotations.
type texts struct{ values map[string]string }

// table has one copy of each value that is in use, by a hash of its contents: the contents themselves would take as much as the values.
type table[T any] map[[sha256.Size]byte]weak.Pointer[T]

// intern returns the copy that is in use of the value whose contents are the key, or makes it.
func intern[T any](i *interner, in *table[T], value func() *T) *T {
	hash := sha256.Sum256(i.key)
	if held := (*in)[hash].Value(); held != nil {
		return held
	}
	made := value()
	if *in == nil {
		*in = table[T]{}
	}
	(*in)[hash] = weak.Make(made)
	runtime.AddCleanup(made, func(hash [sha256.Size]byte) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if (*in)[hash].Value() == nil { // not if it was made again meanwhile
			delete(*in, hash)
		}
	}, hash)
	return made
}

// text returns the copy of a string that is held; a long one is not.
func (i *interner) text(s string) string {
	if s == "" || len(s) > internedText {
		return s
	}
	if held, ok := i.young[s]; ok {
		return held
	}
	held, ok := i.old[s]
	if !ok {
		held = string([]byte(s)) // a copy of its own: a string that was decoded may be a part of something larger
	}
	if len(i.young) >= internedTexts {
		i.old, i.young = i.young, nil
	}
	if i.young == nil {
		i.young = map[string]string{}
	}
	i.young[held] = held
	return held
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

// textsOf returns the copy of a Pod's labels or annotations that is in use; nil if there are none. As a rule they come from the template,
// and are those of its other Pods, too.
func (i *interner) textsOf(values map[string]string) *texts {
	if len(values) == 0 {
		return nil
	}
	names := make([]string, 0, 16)
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	i.key = i.key[:0]
	for _, name := range names {
		i.write(name, values[name])
	}
	return intern(i, &i.maps, func() *texts {
		held := make(map[string]string, len(values))
		for _, name := range names {
			held[i.text(name)] = i.text(values[name])
		}
		return &texts{values: held}
	})
}

// shapeOf returns the copy of a Pod's shape that is in use.
func (i *interner) shapeOf(p *corev1.Pod) *shape {
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
	return intern(i, &i.shapes, func() *shape {
		return &shape{
			namespace: i.text(p.Namespace), owners: p.OwnerReferences, gates: p.Spec.ReadinessGates,
			containers: i.outlines(p.Spec.Containers), initContainers: i.outlines(p.Spec.InitContainers),
			images: i.imagesOf(p.Status.ContainerStatuses), initImages: i.imagesOf(p.Status.InitContainerStatuses),
		}
	})
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
