// Package trafficrouting leads some requests to the new versions of several workloads, whose Rollouts share what leads traffic to them.
//
// Its promise: the routes of a TrafficRouting lead traffic as it says while any of its Rollouts has a release, and are what their user
// wrote otherwise, also when it is deleted. No Service is created or changed: labels of the Pods tell the versions apart, and a mesh reads
// them.
//
//	Initial ─ Healthy ─ Progressing ─ Finalizing ─ Healthy
//	any phase ─ Terminating
//
// A Rollout that has a release says so by a finalizer of its own. That of a Rollout that is gone, or names another one, is taken off.
package trafficrouting
