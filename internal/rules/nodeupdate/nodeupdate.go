// Package nodeupdate decides on which nodes a rollout that goes from node to node takes its next step.
//
// It keeps two inequalities. Without surge, a step never takes the number of nodes without an available Pod above maxUnavailable by itself,
// nor that of nodes without a ready one. With surge, no step makes more than maxSurge nodes run two Pods. A node that is broken already
// costs nothing, so that a rollout never waits for what it repairs.
package nodeupdate

// State says how far a Pod is of use.
type State int

const (
	// Absent means that there is no Pod, or only one on its way out.
	Absent State = iota
	// NotReady means that the Pod is out of service: to replace it costs nothing.
	NotReady
	// Young means that the Pod is ready and not available: it has not been for long enough, or a hook holds it.
	Young
	// Available means that the Pod is in service.
	Available
)

// Node is a node that should run a Pod.
type Node struct {
	Name string
	// Selected means that the node selector of the update matches the node.
	Selected bool
	// Old and New are the node's Pods at older revisions and at the update revision.
	Old, New State
	// Excess means that there is more than one Pod of a side: that is cleaned up first.
	Excess bool
	// Held means that there is a Pod besides that is to go and can't yet: that is waited for.
	Held bool
}

// Limits are the limits of a rollout as numbers of nodes.
type Limits struct {
	// Partition is the number of nodes kept at older revisions.
	Partition int
	// BySelector means that only selected nodes are updated.
	BySelector     bool
	MaxUnavailable int
	MaxSurge       int
}

// Step is what a rollout does next.
type Step struct {
	// Take are the nodes that the step is taken on, in order.
	Take []string
	// Wait are those that it would be taken on if it were not for the limit.
	Wait []string
	// Used is the number of nodes that the limit is used up by, those to take included.
	Used int
}

// Reach returns the nodes that a rollout may touch, in order, out of all nodes in their order of update. First come those that have
// been updated or have no Pod at all, so that a lower partition adds nodes and exchanges none; as many as the partition says are left
// out at the end.
//
// Of ten nodes n9 to n0 that are all old, partition 7 keeps n9, n8 and n7. Where a selector matches n8, n4 and n1, partition 8 keeps n8 and
// n4.
func Reach(nodes []Node, l Limits) []Node {
	var updated, updating, old []Node
	for _, n := range nodes {
		switch {
		case n.New != Absent || n.Excess:
			updated = append(updated, n)
		case n.Old == Absent:
			updating = append(updating, n)
		case n.Selected || !l.BySelector:
			old = append(old, n)
		}
	}
	reach := append(append(updated, updating...), old...)
	return reach[:min(len(reach), max(len(nodes)-l.Partition, 0))]
}

// Replace returns the nodes whose old Pod goes before a new one comes, be it deleted or changed in place.
//
// Of ten nodes with maxUnavailable 2, of which three have broken old Pods, those three are taken and no other, until fewer than two nodes
// are without an available Pod.
func Replace(nodes []Node, l Limits) Step {
	var unavailable, notReady int
	for _, n := range nodes {
		switch n.serves() {
		case Absent, NotReady:
			unavailable++
			notReady++
		case Young:
			unavailable++
		}
	}
	var step Step
	var whole []Node
	for _, n := range Reach(nodes, l) {
		switch {
		case !n.isOld():
		case n.Old == NotReady:
			step.Take = append(step.Take, n.Name)
		default:
			whole = append(whole, n)
		}
	}
	for _, n := range whole {
		switch {
		case notReady >= l.MaxUnavailable || n.Old == Available && unavailable >= l.MaxUnavailable:
			step.Wait = append(step.Wait, n.Name)
			continue
		case n.Old == Available:
			unavailable++
		}
		notReady++
		step.Take = append(step.Take, n.Name)
	}
	step.Used = unavailable
	return step
}

// Surge returns the nodes that get a new Pod beside their old one.
func Surge(nodes []Node, l Limits) Step {
	var step Step
	for _, n := range nodes {
		if n.isPair() {
			step.Used++
		}
	}
	reach := Reach(nodes, l)
	for _, n := range reach {
		if n.isOld() && n.Old == NotReady {
			step.Take = append(step.Take, n.Name)
			step.Used++
		}
	}
	for _, n := range reach {
		switch {
		case !n.isOld() || n.Old == NotReady:
		case step.Used < l.MaxSurge:
			step.Take = append(step.Take, n.Name)
			step.Used++
		default:
			step.Wait = append(step.Wait, n.Name)
		}
	}
	return step
}

// isOld reports whether the update of the node has not begun.
func (n Node) isOld() bool { return n.Old != Absent && n.New == Absent && !n.Excess && !n.Held }

// isPair reports whether the node runs more than one Pod.
func (n Node) isPair() bool {
	return n.Excess || n.Old != Absent && n.New != Absent || n.Held && (n.Old != Absent || n.New != Absent)
}

// serves returns how far the node has a Pod of use. Of two Pods it is not known yet which one will stay.
func (n Node) serves() State {
	switch {
	case n.Excess:
		return NotReady
	case n.Old == Absent:
		return n.New
	case n.New == Absent:
		return n.Old
	}
	return min(n.Old, n.New)
}

// Place is a node that should run a Pod, and whether it has one.
type Place struct {
	Name   string
	HasPod bool
}

// Creation says which nodes without a Pod get one.
type Creation struct {
	// Update are nodes that get one at the update revision.
	Update []string
	// Old are nodes that lost theirs and get one at the older revision.
	Old []string
	// Wait are nodes that the partition keeps from getting their first one.
	Wait []string
}

// Progress is how far a partitioned creation has come.
type Progress struct {
	// Updated is the number of nodes with a Pod at the update revision, and Partition that of the nodes to leave alone.
	Updated, Partition int
	// Known is the number of nodes that were last reported to have a Pod.
	Known int
}

// Create returns which of the nodes, in the order of creation, get a Pod where first Pods are created by partition: as many as are missing
// from the number of nodes less the partition. A node that lost its Pod gets it back whatever the partition says, and comes before one that
// never had any: one that stands before a node that has a Pod, and as many more as are missing from the number last reported.
//
// Of ten nodes without Pods, partition 8 gives n0 and n1 their first one, and partition 5 then also n2, n3 and n4.
func Create(places []Place, p Progress) Creation {
	lost, never := missing(places, p.Known)
	quota := max(len(places)-p.Updated-p.Partition, 0)
	var out Creation
	// Nodes are updated in the other direction: the last one to lose its Pod is the first that had a new one.
	for i := len(lost) - 1; i >= 0; i-- {
		if quota > 0 {
			quota--
			out.Update = append(out.Update, lost[i])
		} else {
			out.Old = append(out.Old, lost[i])
		}
	}
	first := min(quota, len(never))
	out.Update = append(out.Update, never[:first]...)
	out.Wait = never[first:]
	return out
}

// missing returns the nodes that lost their Pod, and those that never had one.
func missing(places []Place, known int) (lost, never []string) {
	last, have := -1, 0
	for i, place := range places {
		if place.HasPod {
			last = i
			have++
		}
	}
	for i, place := range places {
		switch {
		case place.HasPod:
		case i < last || len(lost) < known-have:
			lost = append(lost, place.Name)
		default:
			never = append(never, place.Name)
		}
	}
	return lost, never
}
