// Package launchpriority starts the containers of a Pod in the order of their launch priorities: it writes the barrier, the ConfigMap whose
// keys let them start, one group after the other.
//
//	[webhook: each container refers to the key of its priority] ──► p_10 ──► those of 10 are ready ──► p_0, immutable ──► completed
//
// A group of containers starts only when all containers of higher priorities are ready, or have done their work. A key is never taken away.
// After the last group the Pod carries an annotation that says so, and kubelets need not watch the barrier any more; should someone delete
// it, it is made again, because a container that restarts needs its key. The barrier goes with its Pod, before a new Pod of the same name
// can find it.
package launchpriority
