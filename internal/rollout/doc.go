// Package rollout holds what the controllers of workloads have in common: how a Pod is classified, the steps of a plan that know one
// Pod (settle what is in flight, update in place, wait for a hook, adopt, release), revisions, images pulled ahead, progress and
// conditions.
//
// A workload's own planner decides which Pods take a step and when. Everything is pure: a step adds writes and holds to the plan's
// builder, and changes nothing but the notes of this pass.
package rollout

// Event reasons that workloads share. Wire: users' alerts and tools match them.
const (
	EventSuccessfulCreate           = "SuccessfulCreate"
	EventFailedCreate               = "FailedCreate"
	EventSuccessfulDelete           = "SuccessfulDelete"
	EventFailedDelete               = "FailedDelete"
	EventFailedUpdate               = "FailedUpdate"
	EventSuccessfulUpdatePodInPlace = "SuccessfulUpdatePodInPlace"
	EventFailedUpdatePodInPlace     = "FailedUpdatePodInPlace"
	eventCreatedImagePullJob        = "CreatedImagePullJob"
	eventFailedCreateImagePullJob   = "FailedCreateImagePullJob"
)
