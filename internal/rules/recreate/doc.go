// Package recreate decides about requests to recreate containers of a running Pod: what a request freezes when it is made, when the manager ends it,
// and, on the node, which container is to be stopped next.
//
// Its promise: no container is stopped twice for one request, whenever the daemon is killed. Before the daemon stops a container it has written down
// which one; a container with another identity is never it.
//
//	"" ──── Pending ──── Recreating ──── Completed        a request; one of a Pod at a time is Recreating
//	Pending ──── Recreating ──┬── Succeeded               one of its containers
//	                          └── Failed
package recreate
