package daemonset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// place is a node that should run a Pod or has one.
type place struct {
	name string
	// node is nil when it is gone.
	node    *corev1.Node
	verdict nodefit.Verdict
	// selected means that the node selector of the update matches the node.
	selected bool
	// members are the node's Pods, the first of which speaks for it: those that are bound, then the oldest.
	members []*member
}

// member is a Pod of the DaemonSet, and the facts that the rules ask for.
type member struct {
	pod   *corev1.Pod
	state pub.LifecycleStateType
	// leaving means that the Pod is being deleted, and ended that it has run to its end, well or badly.
	leaving, ended bool
	// updated means that the Pod is at the update revision.
	updated, ready, available bool
	// settled means that this pass has already planned what becomes of the Pod.
	settled bool
}

// runs reports whether the Pod counts as the node's.
func (m *member) runs() bool {
	return !m.leaving && !m.ended && m.state != pub.LifecycleStatePreparingDelete
}

// waitsToGo reports whether the Pod is kept from being deleted by its hook, or was until now.
func (m *member) waitsToGo() bool {
	return !m.leaving && !m.ended && m.state == pub.LifecycleStatePreparingDelete
}

func (m *member) use() nodeupdate.State {
	switch {
	case m.available:
		return nodeupdate.Available
	case m.ready:
		return nodeupdate.Young
	}
	return nodeupdate.NotReady
}

// sort puts the Pods in the order in which they speak for their node.
func (p *place) sort() {
	slices.SortFunc(p.members, func(a, b *member) int {
		return cmp.Or(
			order.FalseFirst(pod.IsScheduled(b.pod), pod.IsScheduled(a.pod)),
			a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
			cmp.Compare(a.pod.Name, b.pod.Name),
		)
	})
}

// running returns the Pods that count as the node's.
func (p *place) running() []*member {
	var out []*member
	for _, m := range p.members {
		if m.runs() {
			out = append(out, m)
		}
	}
	return out
}

// asNode returns the place as the rules of updates see it.
func (p *place) asNode() nodeupdate.Node {
	n := nodeupdate.Node{Name: p.name, Selected: p.selected}
	for _, m := range p.members {
		n.Held = n.Held || !m.leaving && !m.runs()
		if !m.runs() {
			continue
		}
		side := &n.Old
		if m.updated {
			side = &n.New
		}
		if *side != nodeupdate.Absent {
			n.Excess = true
		}
		*side = max(*side, m.use())
	}
	return n
}

// old returns the node's Pod at an older revision, or nil.
func (p *place) old() *member {
	for _, m := range p.members {
		if m.runs() && !m.updated {
			return m
		}
	}
	return nil
}
