// Package inject puts sidecars into new Pods: which SidecarSets apply to a Pod, which revision of each, and what the Pod is then.
//
// SidecarSets are taken in the order of their names, so that the same Pod always comes out the same. A list of containers becomes
//
//	[sidecars before] + the Pod's own + [sidecars after]
//
// where init containers are sorted by name and containers stand in the order of their SidecarSets. What the Pod itself defines wins over
// what a SidecarSet does, in volumes and annotations; only a container of a sidecar's name is replaced, at its place, because it is the
// sidecar of a Pod that was written from another one. Done again, it all changes nothing.
package inject
