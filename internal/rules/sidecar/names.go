package sidecar

import (
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Names returns the names of the sidecars that stay in a Pod, in ascending order: all containers, and the init containers that run beside
// them. A hot-upgrade sidecar has its own name, not those of its two containers.
func Names(spec *v1beta1.SidecarSetSpec) []string {
	var names []string
	for i := range spec.Containers {
		names = append(names, spec.Containers[i].Name)
	}
	for i := range spec.InitContainers {
		if IsNative(&spec.InitContainers[i]) {
			names = append(names, spec.InitContainers[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// IsHot reports whether the sidecar is added as two containers, of which one is idle.
func IsHot(c *v1beta1.SidecarContainer) bool {
	return c.UpgradeStrategy.UpgradeType == v1beta1.SidecarContainerHotUpgrade
}

// Twins returns the names of the two containers of a hot-upgrade sidecar. The first one works when a Pod is new.
func Twins(sidecar string) (first, second string) {
	return sidecar + "-1", sidecar + "-2"
}
