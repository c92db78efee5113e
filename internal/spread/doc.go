// Package spread gives new Pods to the subsets of WorkloadSpreads, in every manager, and keeps the ledger of the room that it gives.
//
// The inequality that it keeps, however many managers there are and whichever of them ends at any moment:
//
//	Pods in a subset and on their way to it  ≤  its maxReplicas
//
// Within a process the Pods of one WorkloadSpread wait for each other. Between processes only the write of the status counts: room is taken
// by entries in it, over the version that the room was computed from. One write takes room for all Pods that wait, and while Pods keep
// coming for some of those to come. That part is a lease: it is given to Pods from memory for five seconds, and given back when no Pod has
// asked for a second, when others may be short of room, and when the process ends. Of a process that is killed, the entries leave the
// status 30 seconds after they were made, when no Pod that had one can appear any more.
//
// A Pod for which there is no limited room costs neither a read nor a write.
package spread
