package daemonset

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// nodeState is a node that should run a Pod or has one.
type nodeState struct {
	name string
	// node is nil when it is gone.
	node    *corev1.Node
	verdict nodefit.Verdict
	// selected means that the node selector of the update matches the node.
	selected bool
	// members are the node's Pods, the first of which stands for it in the status: those that are bound, then the oldest.
	members []*rollout.Member
}

// waitsToGo reports whether the Pod is kept from being deleted by its hook, or was until now.
func waitsToGo(m *rollout.Member) bool { return !m.Leaving && !m.Ended && m.IsHeld() }

// stateOf returns how far the Pod is of use.
func stateOf(m *rollout.Member) nodeupdate.State {
	switch {
	case m.Available:
		return nodeupdate.Available
	case m.Ready:
		return nodeupdate.Young
	}
	return nodeupdate.NotReady
}

// sort puts the Pods in order: those that are bound, then the oldest.
func (p *nodeState) sort() {
	slices.SortFunc(p.members, func(a, b *rollout.Member) int {
		return cmp.Or(
			order.FalseFirst(pod.IsScheduled(b.Pod), pod.IsScheduled(a.Pod)),
			a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time),
			cmp.Compare(a.Pod.Name, b.Pod.Name),
		)
	})
}

// running returns the Pods that count as the node's.
func (p *nodeState) running() []*rollout.Member {
	var out []*rollout.Member
	for _, m := range p.members {
		if m.Runs() {
			out = append(out, m)
		}
	}
	return out
}

// asNode returns the node as the rules of updates see it.
func (p *nodeState) asNode() nodeupdate.Node {
	n := nodeupdate.Node{Name: p.name, Selected: p.selected}
	for _, m := range p.members {
		n.Held = n.Held || !m.Leaving && !m.Runs()
		if !m.Runs() {
			continue
		}
		side := &n.Old
		if m.Updated {
			side = &n.New
		}
		if *side != nodeupdate.Absent {
			n.Excess = true
		}
		*side = max(*side, stateOf(m))
	}
	return n
}

// old returns the node's Pod at an older revision, or nil.
func (p *nodeState) old() *rollout.Member {
	for _, m := range p.members {
		if m.Runs() && !m.Updated {
			return m
		}
	}
	return nil
}

// updates tells whether Pods are at the update revision, and finds out once for each of their revisions.
type updates struct {
	history revision.History
	// generation is what the DaemonSet was told about its template by older software; empty when nothing.
	generation string
	known      map[string]bool
}

// has reports whether the Pod is at the update revision: by its label, because its revision holds the same template, or, where its revision
// is not stored any more, by the number of its template.
func (u *updates) has(p *corev1.Pod) bool {
	label := p.Labels[appsv1.ControllerRevisionHashLabelKey]
	answer, known := u.known[label]
	if known {
		return answer
	}
	rev := u.history.Of(p)
	if rev == nil {
		return u.generation != "" && p.Labels[keys.PodTemplateGeneration] == u.generation
	}
	answer = u.history.MeansUpdate(rev)
	u.known[label] = answer
	return answer
}
