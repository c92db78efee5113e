// Package podbudget is the webhook by which PodUnavailableBudgets decide whether a Pod may be deleted, evicted, updated in place or
// resized.
//
// The API server sends only what names a budget: of deletions and updates those of Pods that carry the name of one, of evictions, on which
// that is not to be seen, those in namespaces that hold one. Everything else goes on while no manager is there.
package podbudget
