// Package ephemeraljob adds ephemeral containers to Pods that run, and waits until they have ended.
//
// Its promise: a Pod gets the containers of a job once, whatever happens to the controller, its cache and the API server; containers run,
// or may still start, in no more Pods than parallelism allows; and the status of a finished job stays as it is. Ephemeral containers can't
// be removed from a Pod, so the Pods themselves are the only memory that this takes.
//
//	waiting ──► running ──┬── all Pods have succeeded ──── succeeded ──┐
//	              ▲       ├── one has failed, all ended ── failed ─────┼── ttl ── gone
//	              ▼       └── deadline ─────────────────── failed ─────┘
//	            paused
package ephemeraljob
