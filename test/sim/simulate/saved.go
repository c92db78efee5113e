package simulate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Saved is a copy of what a cluster holds.
type Saved struct {
	revision int64
	shelves  shelves
	alive    map[types.UID]bool
	history  []Change
}

// Save returns a copy of what the cluster holds, as of its storage.
func (c *Cluster) Save() *Saved {
	return &Saved{revision: c.revision, shelves: c.shelves.copied(), alive: maps.Clone(c.alive), history: slices.Clone(c.history)}
}

// Restore has the cluster hold what it held when the copy was made. A cache from the time before hears nothing until the cluster has come
// as far again, as with a watch that is resumed at a revision which does not exist yet.
func (c *Cluster) Restore(s *Saved) {
	c.revision, c.shelves, c.alive, c.history = s.revision, s.shelves.copied(), maps.Clone(s.alive), slices.Clone(s.history)
}

func (s shelves) copied() shelves {
	out := make(shelves, len(s))
	for i, one := range s {
		out[i] = &shelf{
			kind: one.kind, keys: slices.Clone(one.keys), objects: slices.Clone(one.objects), changes: slices.Clone(one.changes),
		}
	}
	return out
}
