package fakenode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beat is how often the kubelet looks at its containers.
const beat = 100 * time.Millisecond

// Node is a node with a kubelet that starts what ends, and tells of it.
type Node struct {
	*Runtime
	Name   string
	client client.Client

	// every is how often Pods are looked at of which nothing has changed on the node.
	every time.Duration
	mu    sync.Mutex
	pods  map[types.UID]*pod
}

// pod is a Pod of the node.
type pod struct {
	key        client.ObjectKey
	containers []*container
	readyAfter time.Duration
	policy     corev1.RestartPolicy
	// told is what was reported last, and when.
	told   string
	toldAt time.Time
}

type container struct {
	name, id string
	restarts int32
	started  time.Time
	// ended is when the kubelet has seen the container end; zero while it runs.
	ended time.Time
}

// NewNode makes a node object, and plays its kubelet until the context ends.
func NewNode(ctx context.Context, c client.Client, r *Runtime, node *corev1.Node) (*Node, error) {
	if err := c.Create(ctx, node); err != nil {
		return nil, fmt.Errorf("making node %s: %w", node.Name, err)
	}
	n := &Node{Runtime: r, Name: node.Name, client: c, every: 2 * beat, pods: map[types.UID]*pod{}}
	go n.work(ctx)
	return n, nil
}

// Run makes a Pod on the node, and starts its containers, which turn ready after a while.
func (n *Node) Run(ctx context.Context, p *corev1.Pod, readyAfter time.Duration) error {
	p.Spec.NodeName = n.Name
	if err := n.client.Create(ctx, p); err != nil {
		return fmt.Errorf("making Pod %s: %w", p.Name, err)
	}
	known := &pod{key: client.ObjectKeyFromObject(p), readyAfter: readyAfter, policy: p.Spec.RestartPolicy}
	for _, c := range p.Spec.Containers {
		known.containers = append(known.containers, &container{name: c.Name, id: n.run(string(p.UID), c.Name, 0), started: time.Now()})
	}
	n.mu.Lock()
	n.pods[p.UID] = known
	n.mu.Unlock()
	return n.report(ctx, known)
}

// End has a container of a Pod end by itself.
func (n *Node) End(p *corev1.Pod, name string, code int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.pods[p.UID].containers {
		if c.name == name {
			n.end(c.id, code)
		}
	}
}

func (n *Node) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat):
		}
		n.mu.Lock()
		var all []*pod
		for uid, p := range n.pods {
			n.restart(string(uid), p)
			// What others write on the Pod is looked for less often.
			if now := n.summary(p); now != p.told || time.Since(p.toldAt) > n.every {
				p.told, p.toldAt = now, time.Now()
				all = append(all, p)
			}
		}
		n.mu.Unlock()
		for _, p := range all {
			if err := n.report(ctx, p); apierrors.IsNotFound(err) {
				n.mu.Lock()
				for uid, known := range n.pods {
					if known == p {
						delete(n.pods, uid)
					}
				}
				n.mu.Unlock()
			}
		}
	}
}

// Relax has Pods of which nothing has changed looked at less often: for a node with many.
func (n *Node) Relax(every time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.every = every
}

// summary is what the kubelet has to tell of a Pod; the caller holds the lock.
func (n *Node) summary(p *pod) string {
	var out strings.Builder
	for _, c := range p.containers {
		running, _ := n.isRunning(c.id)
		fmt.Fprint(&out, c.id, running, time.Since(c.started) >= p.readyAfter, " ")
	}
	return out.String()
}

// restart starts the containers of a Pod that have ended, half a second after they have.
func (n *Node) restart(uid string, p *pod) {
	for _, c := range p.containers {
		running, code := n.isRunning(c.id)
		switch {
		case running:
		case c.ended.IsZero():
			c.ended = time.Now()
		case time.Since(c.ended) > 5*beat && (p.policy != corev1.RestartPolicyNever) &&
			(p.policy != corev1.RestartPolicyOnFailure || code != 0):
			c.restarts++
			c.id, c.started, c.ended = n.run(uid, c.name, uint32(c.restarts)), time.Now(), time.Time{}
		}
	}
}

// report writes the status of a Pod.
func (n *Node) report(ctx context.Context, known *pod) error {
	p := &corev1.Pod{}
	if err := n.client.Get(ctx, known.key, p); err != nil {
		return err
	}
	before := p.DeepCopy()
	n.mu.Lock()
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	p.Status.ContainerStatuses = nil
	ready := corev1.ConditionTrue
	for _, c := range known.containers {
		s := corev1.ContainerStatus{Name: c.name, Image: "image", ContainerID: "containerd://" + c.id, RestartCount: c.restarts}
		if running, code := n.isRunning(c.id); running {
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}
			s.Ready = time.Since(c.started) >= known.readyAfter
		} else {
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, ContainerID: s.ContainerID}
		}
		if !s.Ready {
			ready = corev1.ConditionFalse
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
	}
	n.mu.Unlock()
	set(p, corev1.PodInitialized, corev1.ConditionTrue)
	set(p, corev1.ContainersReady, ready)
	for _, gate := range p.Spec.ReadinessGates {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		if i < 0 || p.Status.Conditions[i].Status != corev1.ConditionTrue {
			ready = corev1.ConditionFalse
		}
	}
	set(p, corev1.PodReady, ready)
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return nil
	}
	return n.client.Status().Patch(ctx, p, client.StrategicMergeFrom(before))
}

func set(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.Now()
			}
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()})
}
