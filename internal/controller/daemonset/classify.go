package daemonset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// defaultBurst is the most Pods that one pass creates where the DaemonSet does not say.
const defaultBurst = 250

// State is a Snapshot classified once: what the plan and the status both speak of.
type State struct {
	Snapshot
	selector labels.Selector
	// canary selects the nodes to update; nil for all.
	canary   labels.Selector
	strategy v1beta1.RollingUpdateDaemonSet
	limits   nodeupdate.Limits
	burst    int
	workload rollout.Workload
	// nodeStates are the nodes that should run a Pod or have one, by name; those that are gone among them.
	nodeStates []*nodeState
	byName     map[string]*nodeState
	// desired is the number of nodes that should run a Pod.
	desired int
	// inReach are the nodes that the update may touch.
	inReach map[string]bool
	// release are Pods that the DaemonSet controls and whose labels it no longer selects.
	release []*corev1.Pod
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// Classify classifies a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	spec := &s.Set.Spec
	v.workload = rollout.Workload{
		Object: s.Set, Kind: kind(), Selector: spec.Selector, Lifecycle: spec.Lifecycle, MinReadySeconds: spec.MinReadySeconds,
		OnDelete: spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType, InPlace: s.Options.InPlace,
		ShortHash: true, Bare: true, PullJobs: s.PullJobs, Taken: s.Taken, Now: s.Now,
	}
	if v.problem = v.readSpec(); v.problem != nil || s.Set.DeletionTimestamp != nil {
		return v
	}
	if v.inPlace() {
		v.workload.Template = &spec.Template
	}
	if v.workload.History, v.problem = readHistory(s, v.workload.Owner()); v.problem != nil {
		return v
	}
	split := pod.OwnershipOf(s.Set.UID, v.selector, s.Pods)
	v.release = split.Release
	v.classifyNodes()
	v.classifyPods(split.Owned)
	if v.problem = v.readLimits(); v.problem != nil {
		return v
	}
	v.inReach = map[string]bool{}
	if !v.workload.OnDelete {
		for _, n := range nodeupdate.Reach(v.nodes(), v.limits) {
			v.inReach[n.Name] = true
		}
	}
	return v
}

func (v *State) readSpec() error {
	spec := &v.Set.Spec
	var err error
	if v.selector, err = pod.Selector(spec.Selector); err != nil {
		if errors.Is(err, pod.ErrSelectsAll) {
			return errSelectsAll
		}
		return err
	}
	if spec.UpdateStrategy.RollingUpdate != nil && !v.workload.OnDelete {
		v.strategy = *spec.UpdateStrategy.RollingUpdate
	}
	v.workload.Paused = v.strategy.Paused != nil && *v.strategy.Paused
	if v.strategy.Selector == nil {
		return nil
	}
	if v.canary, err = metav1.LabelSelectorAsSelector(v.strategy.Selector); err != nil {
		return fmt.Errorf("reading updateStrategy.rollingUpdate.selector: %w", err)
	}
	return nil
}

// readLimits turns percentages into numbers of the nodes that were just seen: those of the status may be from before the nodes came.
func (v *State) readLimits() error {
	var err error
	number := func(field string, value *intstr.IntOrString, r budget.Rounding) int {
		n, problem := budget.Scaled(value, v.desired, r)
		if problem != nil && err == nil {
			err = fmt.Errorf("%s: %w", field, problem)
		}
		return n
	}
	v.limits = nodeupdate.Limits{
		BySelector:     v.canary != nil,
		Partition:      number("updateStrategy.rollingUpdate.partition", v.strategy.Partition, budget.Down),
		MaxUnavailable: number("updateStrategy.rollingUpdate.maxUnavailable", v.strategy.MaxUnavailable, budget.Up),
		MaxSurge:       number("updateStrategy.rollingUpdate.maxSurge", v.strategy.MaxSurge, budget.Up),
	}
	if v.inPlace() || v.workload.OnDelete {
		v.limits.MaxSurge = 0
	}
	if v.limits.MaxSurge == 0 {
		v.limits.MaxUnavailable = max(v.limits.MaxUnavailable, 1)
	}
	v.burst = defaultBurst
	if value := v.Set.Spec.BurstReplicas; value != nil {
		// A small percentage of few nodes must create them all the same.
		v.burst = max(number("burstReplicas", value, budget.Down), 1)
	}
	return err
}

func (v *State) inPlace() bool { return v.strategy.Type == v1beta1.InPlaceRollingUpdateType }

func (v *State) surges() bool { return v.limits.MaxSurge > 0 }

// classifyNodes evaluates each node once.
func (v *State) classifyNodes() {
	v.byName = map[string]*nodeState{}
	fit := nodefit.Of(&v.Set.Spec.Template.Spec)
	for _, node := range v.Nodes {
		p := &nodeState{name: node.Name, node: node, verdict: fit.On(node)}
		p.selected = v.canary != nil && v.canary.Matches(labels.Set(node.Labels))
		v.byName[node.Name] = p
		if p.verdict.Run {
			v.nodeStates = append(v.nodeStates, p)
			v.desired++
		}
	}
}

// classifyPods assigns each Pod to its node. A Pod that has ended and is being deleted is gone already: what keeps it, such as a
// finalizer, must not keep its node without a daemon. One that belongs to no node does not count.
func (v *State) classifyPods(pods []*corev1.Pod) {
	updated := updates{history: v.workload.History, generation: v.Set.Annotations[keys.TemplateGeneration], known: map[string]bool{}}
	for _, p := range pods {
		name := nodefit.NodeOf(p)
		if name == "" || p.DeletionTimestamp != nil && pod.IsFinished(p) {
			continue
		}
		m := v.workload.Classify(p)
		m.Updated = updated.has(p) && !v.workload.IsStale(p)
		at := v.byName[name]
		if at == nil {
			at = &nodeState{name: name}
			v.byName[name] = at
		}
		if len(at.members) == 0 && !at.verdict.Run {
			v.nodeStates = append(v.nodeStates, at)
		}
		at.members = append(at.members, &m)
	}
	slices.SortFunc(v.nodeStates, func(a, b *nodeState) int { return cmp.Compare(a.name, b.name) })
	for _, p := range v.nodeStates {
		p.sort()
	}
}

// nodes returns the nodes that should run a Pod in the order of updates: by name, the last one first.
func (v *State) nodes() []nodeupdate.Node {
	out := make([]nodeupdate.Node, 0, v.desired)
	for i := len(v.nodeStates) - 1; i >= 0; i-- {
		if v.nodeStates[i].verdict.Run {
			out = append(out, v.nodeStates[i].asNode())
		}
	}
	return out
}

// members returns the members of all nodes.
func (v *State) members() []*rollout.Member {
	var out []*rollout.Member
	for _, p := range v.nodeStates {
		out = append(out, p.members...)
	}
	return out
}

// memberPods returns all Pods that belong to a node.
func (v *State) memberPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, m := range v.members() {
		out = append(out, m.Pod)
	}
	return out
}

func readHistory(s Snapshot, owner metav1.OwnerReference) (revision.History, error) {
	return revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			return newRevision(s.Set, collisionCount)
		},
		Same:           defaults.Equivalent,
		Owner:          owner,
		CollisionCount: s.Set.Status.CollisionCount,
	})
}

// newRevision makes the revision of the present template.
//
// Wire: a DaemonSet's revisions say their hash by the label by which its Pods do, as those of Kubernetes.
func newRevision(set *v1beta1.DaemonSet, collisionCount int32) (*appsv1.ControllerRevision, error) {
	rev, err := revision.New(revision.OwnerOf(set, kind()), &set.Spec.Template, collisionCount)
	if err != nil {
		return nil, err
	}
	rev.Labels[appsv1.ControllerRevisionHashLabelKey] = rev.Labels[keys.RevisionHash]
	delete(rev.Labels, keys.RevisionHash)
	return rev, nil
}

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
