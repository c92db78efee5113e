// Package ephemeraljob adds ephemeral containers to Pods that run, and waits until they have ended.
//
// Its promise: a Pod gets the containers of a job once, whatever the controller, its cache and the API server go through; never is a Pod given them while
// they run, or may still start, in as many Pods as parallelism allows; and once a job is over its status stays as it is. What was added can't be taken out
// of a Pod again by anybody, so that the Pods themselves are the only memory that it takes.
//
//	waiting ──► running ──┬── all Pods have succeeded ──── succeeded ──┐
//	              ▲       ├── one has failed, all ended ── failed ─────┼── ttl ── gone
//	              ▼       └── deadline ─────────────────── failed ─────┘
//	            paused
package ephemeraljob
