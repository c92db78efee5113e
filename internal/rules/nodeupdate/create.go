package nodeupdate

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

// Create returns which of the nodes, in the order of creation, get a Pod where first Pods are created by partition: as many as are missing from
// the number of nodes less the partition. A node that lost its Pod gets it back whatever the partition says, and comes before one that never
// had any: one that stands before a node that has a Pod, and as many more as are missing from the number last reported.
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
