package validating

import "k8s.io/apimachinery/pkg/util/validation/field"

// elsewhere refuses new subsets in other clusters. No controller connects to other clusters yet, and one that does not know of them would
// keep the workload in this cluster. Without a webhook nothing is stored at all: it fails closed.
func (c unitedChange) elsewhere(found *findings) {
	stored := map[string]bool{}
	if c.old != nil {
		for i := range c.old.Spec.Topology.Subsets {
			s := &c.old.Spec.Topology.Subsets[i]
			stored[s.Name] = s.TargetCluster != nil
		}
	}
	path := field.NewPath("spec", "topology", "subsets")
	for i := range c.new.Spec.Topology.Subsets {
		if s := &c.new.Spec.Topology.Subsets[i]; s.TargetCluster != nil && !stored[s.Name] {
			found.forbidden(path.Index(i).Child("targetCluster"), "can't be used: this manager does not connect to other clusters")
		}
	}
}
