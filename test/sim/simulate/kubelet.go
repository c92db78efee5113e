package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
)

// kubeletActor is the name under which Pods are scheduled, started and ended.
const kubeletActor = "kubelet"

// Kubelet is the scheduler and the kubelets of all nodes. It moves a Pod on only when told to.
type Kubelet struct {
	// IsBad tells images that can't be pulled; nil means that there are none.
	IsBad func(image string) bool
	// IsHeld tells containers that can't be created, such as for want of a key of a ConfigMap; nil means that there are none. They are
	// tried again at each step.
	IsHeld func(p *corev1.Pod, c *corev1.Container) bool

	cluster    *Cluster
	containers int
	// idle holds the version of each Pod for which nothing is due.
	idle map[types.UID]*corev1.Pod
}

// NewKubelet returns the kubelets of a cluster.
func NewKubelet(c *Cluster) *Kubelet { return &Kubelet{cluster: c, idle: map[types.UID]*corev1.Pod{}} }

// Step does the next thing that is due for a Pod, and reports whether there was one: bind it, start it, change its containers to what the
// spec says, report its readiness, or end it. What takes a while in the world takes several steps.
func (k *Kubelet) Step(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return k.end(p)
	}
	if isFinished(p) || k.idle[p.UID] == p {
		return false
	}
	after := withOwnStatus(p)
	k.advance(after)
	if p.Spec.NodeName == after.Spec.NodeName && equal(&p.Status, &after.Status) {
		if p.Spec.NodeName != "" && !k.waits(p) { // else its node may still come
			k.idle[p.UID] = p
		}
		return false
	}
	k.write(p, after)
	return true
}

func (k *Kubelet) advance(p *corev1.Pod) {
	switch {
	case p.Spec.NodeName == "":
		k.bind(p)
		return
	case p.Status.Phase == corev1.PodPending:
		k.start(p)
		p.Status.ObservedGeneration = p.Generation
	default:
		changed := k.change(p) || k.join(p)
		p.Status.ObservedGeneration = p.Generation
		if !changed {
			k.getReady(p)
		}
	}
	k.judge(p)
}

// bind puts a Pod on the node that it is pinned to, once that is there, or else on any; one with a scheduling gate on none.
func (k *Kubelet) bind(p *corev1.Pod) {
	node := nodefit.NodeOf(p)
	switch {
	case len(p.Spec.SchedulingGates) > 0:
		return
	case node == "":
		node = "node-" + string(p.UID[len(p.UID)-1:])
	case !k.cluster.hasNode(node):
		return
	}
	p.Spec.NodeName = node
	k.setCondition(p, corev1.PodScheduled, corev1.ConditionTrue)
}

// start starts all containers, which are not ready yet.
func (k *Kubelet) start(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	started := metav1.NewTime(k.cluster.now.Truncate(time.Second))
	p.Status.StartTime = &started
	k.setCondition(p, corev1.PodInitialized, corev1.ConditionTrue)
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = nil, nil
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // all others have ended by now
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, k.first(c))
		}
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, k.first(c))
	}
}

func (k *Kubelet) first(c corev1.Container) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: c.Name, Resources: c.Resources.DeepCopy()}
	k.run(&status, c.Image)
	return status
}

// runs is a container that runs as long as its Pod, and its status.
type runs struct {
	wanted *corev1.Container
	status *corev1.ContainerStatus
}

// running returns the containers that run as long as the Pod: init containers that restart, and all others.
func running(p *corev1.Pod) []runs {
	var all []runs
	for i := range p.Status.InitContainerStatuses {
		status := &p.Status.InitContainerStatuses[i]
		at := slices.IndexFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == status.Name })
		all = append(all, runs{&p.Spec.InitContainers[at], status})
	}
	for i := range p.Status.ContainerStatuses {
		all = append(all, runs{&p.Spec.Containers[i], &p.Status.ContainerStatuses[i]})
	}
	return all
}

// change makes the containers what the spec says and reports whether one was restarted for it.
func (k *Kubelet) change(p *corev1.Pod) bool {
	restarted := false
	for _, c := range running(p) {
		c.status.Resources = c.wanted.Resources.DeepCopy()
		if c.status.Image != c.wanted.Image {
			c.status.RestartCount++
			k.run(c.status, c.wanted.Image)
			restarted = true
		}
	}
	return restarted
}

// join starts the ephemeral containers that were added since, and reports whether there were any. How they end is up to whoever plays what
// runs in them.
func (k *Kubelet) join(p *corev1.Pod) bool {
	started := false
	for _, c := range p.Spec.EphemeralContainers[len(p.Status.EphemeralContainerStatuses):] {
		status := corev1.ContainerStatus{Name: c.Name}
		k.run(&status, c.Image)
		status.Started = nil
		p.Status.EphemeralContainerStatuses = append(p.Status.EphemeralContainerStatuses, status)
		started = true
	}
	return started
}

func (k *Kubelet) run(status *corev1.ContainerStatus, image string) {
	k.containers++
	status.Image, status.ImageID = image, "sha256:"+image
	status.ContainerID = fmt.Sprintf("containerd://%d", k.containers)
	status.Ready = false
	started := true
	status.Started = &started
	status.State = corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.cluster.now.Truncate(time.Second))},
	}
}

// waits reports whether a container of the Pod is not ready because it can't be created.
func (k *Kubelet) waits(p *corev1.Pod) bool {
	return k.IsHeld != nil && slices.ContainsFunc(running(p), func(c runs) bool { return !c.status.Ready && k.IsHeld(p, c.wanted) })
}

func (k *Kubelet) getReady(p *corev1.Pod) {
	for _, c := range running(p) {
		if !c.status.Ready && k.IsHeld != nil && k.IsHeld(p, c.wanted) {
			c.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}
			continue
		}
		if k.IsBad != nil && k.IsBad(c.status.Image) {
			c.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
			continue
		}
		c.status.Ready = true
	}
}

// judge derives the Pod's readiness from its containers and its readiness gates.
func (k *Kubelet) judge(p *corev1.Pod) {
	containers, ready := corev1.ConditionTrue, corev1.ConditionTrue
	if slices.ContainsFunc(running(p), func(c runs) bool { return !c.status.Ready }) {
		containers, ready = corev1.ConditionFalse, corev1.ConditionFalse
	}
	for _, gate := range p.Spec.ReadinessGates {
		if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}) {
			ready = corev1.ConditionFalse
		}
	}
	k.setCondition(p, corev1.ContainersReady, containers)
	k.setCondition(p, corev1.PodReady, ready)
}

func (k *Kubelet) setCondition(p *corev1.Pod, t corev1.PodConditionType, s corev1.ConditionStatus) {
	now := metav1.NewTime(k.cluster.now.Truncate(time.Second))
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != t {
			continue
		}
		if c.Status != s {
			*c = corev1.PodCondition{Type: t, Status: s, LastTransitionTime: now, ObservedGeneration: c.ObservedGeneration}
		}
		return
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: s, LastTransitionTime: now})
}

// end lets a Pod go whose deletion was asked for; a finalizer may still keep it.
func (k *Kubelet) end(p *corev1.Pod) bool {
	if *p.DeletionGracePeriodSeconds == 0 {
		return false
	}
	after := shallow(p)
	var none int64
	after.DeletionGracePeriodSeconds = &none
	k.write(p, after)
	return true
}

// Restart lets a container crash and start again, after which it has to get ready anew.
func (k *Kubelet) Restart(p *corev1.Pod) {
	if len(p.Spec.Containers) > 0 {
		k.RestartContainer(p, p.Spec.Containers[0].Name)
	}
}

// RestartContainer lets a container of that name end and start again.
func (k *Kubelet) RestartContainer(p *corev1.Pod, name string) {
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || i < 0 {
		return
	}
	after := withOwnStatus(p)
	status := &after.Status.ContainerStatuses[i]
	status.RestartCount++
	// The image is the one of the spec by now: a container that comes back is started from that.
	k.run(status, after.Spec.Containers[i].Image)
	k.judge(after)
	k.write(p, after)
}

// Evict ends a Pod as a node under pressure does: it fails and stays where it is.
func (k *Kubelet) Evict(p *corev1.Pod) {
	if isFinished(p) || p.DeletionTimestamp != nil || p.Spec.NodeName == "" {
		return
	}
	after := withOwnStatus(p)
	after.Status.Phase, after.Status.Reason = corev1.PodFailed, "Evicted"
	k.setCondition(after, corev1.PodReady, corev1.ConditionFalse)
	k.setCondition(after, corev1.ContainersReady, corev1.ConditionFalse)
	k.write(p, after)
}

// withOwnStatus returns a Pod whose status can be changed; it shares the rest with that of the cluster.
func withOwnStatus(p *corev1.Pod) *corev1.Pod {
	after := shallow(p)
	after.Status = *p.Status.DeepCopy()
	return after
}

// write stores what kubelets write of a Pod.
func (k *Kubelet) write(before, after *corev1.Pod) {
	key := k.cluster.KeyOf(before)
	stored, ok := k.cluster.Get(key).(*corev1.Pod)
	if !ok {
		return
	}
	written := shallow(stored)
	written.Spec.NodeName, written.Status = after.Spec.NodeName, after.Status
	written.DeletionGracePeriodSeconds = after.DeletionGracePeriodSeconds
	k.cluster.store(by{actor: kubeletActor}, key, written)
}
