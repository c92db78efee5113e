package nodeupdate

// Place is a node that should run a Pod, and whether it has one.
type Place struct {
	Name   string
	HasPod bool
}

// Creation says which nodes without a Pod get one.
type Creation struct {
	// Again are nodes that had a Pod and lost it.
	Again []string
	// First are nodes that get their first one.
	First []string
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

// Create returns which of the nodes, in the order of creation, get a Pod where first Pods are created by partition: as many as are missing from
// the number of nodes less the partition. A node that lost its Pod gets it back whatever the partition says: one that stands before a node
// that has a Pod, and as many more as are missing from the number last reported.
//
// Of ten nodes without Pods, partition 8 gives n0 and n1 their first one, and partition 5 then also n2, n3 and n4.
func Create(places []Place, p Progress) Creation {
	last, have := -1, 0
	for i, place := range places {
		if place.HasPod {
			last = i
			have++
		}
	}
	quota := len(places) - p.Updated - p.Partition
	lost := p.Known - have
	var out Creation
	for i, place := range places {
		switch {
		case place.HasPod:
		case i < last || lost > 0:
			out.Again = append(out.Again, place.Name)
			lost--
		case quota > len(out.First):
			out.First = append(out.First, place.Name)
		default:
			out.Wait = append(out.Wait, place.Name)
		}
	}
	return out
}
