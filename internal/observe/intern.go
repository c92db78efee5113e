package observe

import (
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// internedValues is how many values of a type an interner holds of late; it may hold as many again of those before. A list comes in the
	// order of names, so that Pods of one template come one after the other.
	internedValues = 1 << 12
	// internedText is the size, in bytes, up to which texts are held, so that an interner stays below some megabytes whatever Pods have.
	internedText = 512
)

// interner keeps one copy of what many Pods have in common: names of images and nodes, and all that comes from one template. A Pod as it is
// decoded has a copy of each of its strings. What it returns must not be changed, as nothing may that a cache holds.
//
// Values that have not come for a long time are forgotten: Pods that have them keep them, and Pods that come later share another copy.
type interner struct {
	mu         sync.Mutex
	key        []byte // is built anew for each value; a lookup by it allocates nothing
	texts      generations[string]
	maps       generations[map[string]string]
	owners     generations[[]metav1.OwnerReference]
	containers generations[[]corev1.Container]
	gates      generations[[]corev1.PodReadinessGate]
}

// generations are values by their contents, those of late and those before.
type generations[T any] struct{ young, old map[string]T }

// get returns the copy that is held of the value with these contents; false if there is none.
func (g *generations[T]) get(contents []byte) (T, bool) {
	if value, ok := g.young[string(contents)]; ok {
		return value, true
	}
	value, ok := g.old[string(contents)]
	if ok {
		g.add(string(contents), value)
	}
	return value, ok
}

// add holds a value, and forgets those before as soon as there are many of late.
func (g *generations[T]) add(contents string, value T) {
	if len(g.young) >= internedValues {
		g.old, g.young = g.young, nil
	}
	if g.young == nil {
		g.young = map[string]T{}
	}
	g.young[contents] = value
}

// text returns the copy of a string that is held; a long one is not.
func (i *interner) text(s string) string {
	if s == "" || len(s) > internedText {
		return s
	}
	i.key = append(i.key[:0], s...)
	if held, ok := i.texts.get(i.key); ok {
		return held
	}
	held := string(i.key) // a copy of its own: a string that was decoded may be a part of something larger
	i.texts.add(held, held)
	return held
}

// write adds a string to the key, with its length, so that no two lists of strings have the same key.
func (i *interner) write(parts ...string) {
	for _, s := range parts {
		i.key = strconv.AppendInt(i.key, int64(len(s)), 10)
		i.key = append(i.key, ':')
		i.key = append(i.key, s...)
	}
}

// textsOf returns the copy of a Pod's labels or annotations that is held. As a rule they come from the template, and are those of its other
// Pods, too.
func (i *interner) textsOf(texts map[string]string) map[string]string {
	if len(texts) == 0 {
		return nil
	}
	names := make([]string, 0, 16)
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	i.key = i.key[:0]
	for _, name := range names {
		i.write(name, texts[name])
	}
	if held, ok := i.maps.get(i.key); ok {
		return held
	}
	contents, held := string(i.key), make(map[string]string, len(texts))
	for _, name := range names {
		held[i.text(name)] = i.text(texts[name])
	}
	if len(contents) <= 2*internedText {
		i.maps.add(contents, held)
	}
	return held
}

// ownersOf returns the copy of a Pod's owner references that is held.
func (i *interner) ownersOf(owners []metav1.OwnerReference) []metav1.OwnerReference {
	if len(owners) == 0 {
		return nil
	}
	i.key = i.key[:0]
	for _, o := range owners {
		i.write(o.APIVersion, o.Kind, o.Name, string(o.UID), flag(o.Controller), flag(o.BlockOwnerDeletion))
	}
	if held, ok := i.owners.get(i.key); ok {
		return held
	}
	i.owners.add(string(i.key), owners)
	return owners
}

// containersOf returns the copy that is held of what outlines leave of containers.
func (i *interner) containersOf(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	i.key = i.key[:0]
	for at := range containers {
		c := &containers[at]
		policy := ""
		if c.RestartPolicy != nil {
			policy = string(*c.RestartPolicy)
		}
		i.write(c.Name, c.Image, policy, strconv.Itoa(len(c.Ports)))
		for _, p := range c.Ports {
			i.write(p.Name, string(p.Protocol), p.HostIP, strconv.Itoa(int(p.ContainerPort)), strconv.Itoa(int(p.HostPort)))
		}
	}
	if held, ok := i.containers.get(i.key); ok {
		return held
	}
	contents, held := string(i.key), outlines(containers)
	i.containers.add(contents, held)
	return held
}

// gatesOf returns the copy of a Pod's readiness gates that is held.
func (i *interner) gatesOf(gates []corev1.PodReadinessGate) []corev1.PodReadinessGate {
	if len(gates) == 0 {
		return nil
	}
	i.key = i.key[:0]
	for _, g := range gates {
		i.write(string(g.ConditionType))
	}
	if held, ok := i.gates.get(i.key); ok {
		return held
	}
	i.gates.add(string(i.key), gates)
	return gates
}

// conditionsOf returns the conditions of a Pod that are read. Those that every Pod in good health has say nothing that its phase does not,
// but for a Pod with readiness gates, to which our controllers may write.
func (i *interner) conditionsOf(p *corev1.Pod) []corev1.PodCondition {
	out := make([]corev1.PodCondition, 0, len(p.Status.Conditions))
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionTrue && len(p.Spec.ReadinessGates) == 0 && isImplied(c.Type, p.Status.Phase) {
			continue
		}
		c.Type, c.Status = corev1.PodConditionType(i.text(string(c.Type))), corev1.ConditionStatus(i.text(string(c.Status)))
		c.Reason = i.text(c.Reason)
		out = append(out, c)
	}
	return slices.Clip(out)
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

// statusesOf returns what is read of the statuses of containers: what they run and since when, and how the one before it ended.
func (i *interner) statusesOf(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(statuses))
	for at := range statuses {
		s := &statuses[at]
		out[at] = corev1.ContainerStatus{
			Name: i.text(s.Name), State: s.State, LastTerminationState: s.LastTerminationState, Ready: s.Ready,
			RestartCount: s.RestartCount,
			Image:        i.text(s.Image), ImageID: i.text(s.ImageID), ContainerID: s.ContainerID,
		}
	}
	return out
}

// addressesOf returns a Pod's addresses, of which one is the address of the Pod.
func addressesOf(ip string, ips []corev1.PodIP) []corev1.PodIP {
	for at := range ips {
		if ips[at].IP == ip {
			ips[at].IP = ip
		}
	}
	return slices.Clip(ips)
}

func flag(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}
