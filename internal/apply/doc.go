// Package apply carries plans out. It is the only package that writes to the API server.
//
// Every write is a patch of what a plan changes, on the condition that the object is still the one that was read; a conflict is never
// retried with the old decision. An owner is not reconciled again before the cache has caught up with its writes (Freshness), and is read
// live after a write with an unknown outcome, so that neither a stale cache nor a lost answer makes anything happen twice.
//
//	executor.go   stages, chains and batches of writes, and their outcome
//	writer.go     one write, and the API server behind it
//	patch.go      what a patch says
//	freshness.go  whether the cache shows our own writes
//	owners.go     what is remembered of an owner between passes; backoff after refusals
//	status.go     when the status of an owner is written
//	budget.go     PodUnavailableBudgets, which may hold writes back
//	events.go     events
//	metrics.go    metrics
package apply
