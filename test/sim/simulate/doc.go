// Package simulate is a cluster in memory: an API server with resource versions, preconditions, subresources, finalizers and garbage
// collection; kubelets that age Pods one step at a time; and caches that lag behind, merge events and start over.
//
// It runs the same planners and the same executor as a real cluster, on one goroutine, with its own clock, and every choice comes from one
// seed: a run that went wrong can be repeated to the letter. Everything that ever happened is kept as a history of changes, over which
// promises can be checked afterwards.
package simulate
