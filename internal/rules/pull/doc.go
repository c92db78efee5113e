// Package pull decides what a NodeImage says: which rounds of pulling jobs ask a node for, how the node's answers are read, and when a request is
// taken off again.
//
// Its promise: a round is named by repository, tag and version, and an answer counts for the round of its version only; a tag that a running job
// wants is not taken off; and no more nodes pull at the same time than a job allows.
//
//	asked for (version n) ── Waiting ── Pulling ──┬── Succeeded ──┐
//	     │                                        └── Failed ─────┼── time is up, or nobody wants it any more: taken off
//	     └── no answer for ten minutes ── Failed ─────────────────┘   or, by a job that never completes: version n+1
package pull
