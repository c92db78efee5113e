// Package workloadspread counts the Pods of WorkloadSpreads, and does what their creation can't do.
//
// New Pods are given to subsets when they are created, by all managers (package internal/spread), which enter them into the ledger in the
// status. Here
//
//   - entries leave the ledger when their Pods are seen, or 30 seconds after they were made, if the API server has no Pod for them either;
//   - Pods that run and were given to no subset get that of their node;
//   - Pods that wait at a scheduling gate, because no manager was asked about them, are given to subsets;
//   - Pods get the deletion cost by which the workload deletes those of the last subset first, if they have another one;
//   - Pods that can't be scheduled in a subset are deleted, with the strategy Adaptive, after the subset has been closed for five minutes.
//
// The status is always written over the version that it was computed from, and only by who has seen all Pods that had left the ledger, so
// that no room is given twice.
package workloadspread
