// Package batchrelease moves the Pods of a workload from one revision to another, batch by batch, as far as a Rollout lets it.
//
// Its promise: no more Pods are updated than the batch up to which it may release says; no update is taken back; a batch counts as ready
// only for the spec and the workload that are there; and a workload is given back either going on by itself, or frozen as it was found,
// as the spec says.
//
// What it does follows from the spec and from what is seen. Nothing but the number of Pods that a rollback in batches keeps is remembered
// in the status.
package batchrelease
