// Package broadcastjob runs one Pod to completion on every node that fits a template.
//
// Its promise: a node gets one Pod and, as long as nobody deletes that Pod, never a second one, whatever becomes of the node, of the cache
// and of the controller; no more Pods are created than parallelism allows to be active; once a job has finished its Pods are stopped, and
// its status stays as it is.
//
//	running ──┬── every node done ────────────────── completed ──┐
//	   ▲      ├── a Pod failed (FailFast), deadline ─ failed ────┼── what still runs is deleted ── ttl ── gone
//	   ▼      │
//	paused ◄──┴── a Pod failed (Pause), spec.paused
package broadcastjob
