// Package release decides what a release of a Rollout does next, as a pure function of its plan, its stored status and what is seen.
//
// Next is called in every round. It returns the status to store and the actions to take after it is stored. Every action is a wanted state:
// taking it again changes nothing, and whether it is reached is seen, not remembered. So a controller that stops at any point goes on where
// it was.
//
//	Initial ─ Healthy ─ Progressing: Initializing ─ InRolling ┬ Finalising ─ Completed ─ Healthy    all steps done
//	                                     ▲             │ ▲    └ Cancelling ─ Completed ─ Healthy    the old template is back
//	                                     └─ new template ┴ Paused
//	any phase ─ Disabling ─ Disabled, and any phase ─ Terminating: the release ends first
package release

import (
	"time"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/analysis"
	"github.com/seed-69ecc383/kruise/internal/rules/guard"
)

// Style is how new Pods come to be.
type Style = v1beta1.RollingStyle

// Plan is what a Rollout wants.
type Plan struct {
	Style Style
	Steps []v1beta1.Step
	// Hash changes with whatever of the steps a release must run again: see Hash.
	Hash string
	// Paused, Disabled and Deleted are the Rollout's.
	Paused, Disabled, Deleted bool
	// Routed says that the Rollout leads traffic, OneService that it does so without a Service for the new version.
	Routed, OneService bool
	// Shared says that the Rollout has a TrafficRouting lead traffic instead, which other Rollouts may share.
	Shared bool
	// Grace is what the data plane is given to follow a change.
	Grace time.Duration
	// Deadline is how long the Pods of a step may take; 0 is as long as they like.
	Deadline time.Duration
	// OnDeadline is what follows when they take longer.
	OnDeadline v1beta1.DeadlineAction
	// Guard is what the Rollout says of the guard; nil for what is the default.
	Guard *v1beta1.Guard
	// RollbackInBatches has a rollback follow the steps.
	RollbackInBatches bool
	// KeepsFrozen has a release that is cut short leave its workload frozen, for a person to let go. It does not concern releases that have
	// succeeded, nor rollbacks.
	KeepsFrozen bool
	// Records has a release recorded when it is over.
	Records bool
}

// Seen is what is there.
type Seen struct {
	Now time.Time
	// Workload is nil while there is none.
	Workload *Workload
	Batch    Batch
	Traffic  Traffic
	// OldPods and NewPods are the Pods of the stable and of the new revision.
	OldPods, NewPods []guard.Pod
	// Measured are the results of measurements that an earlier decision asked for.
	Measured []analysis.Result
	// Recorded says that the record of the release that is over is there.
	Recorded bool
}

// Workload is what is seen of the workload.
type Workload struct {
	// Marked says that its new template waits for the Rollout. Settled says that its status is of its present generation.
	// Frozen says that it does not go on by itself because the webhook that marks it has set its strategy so.
	// Left says that it is frozen by a release of which nothing else is there any more: no Rollout ends that one.
	Marked, Settled, Frozen, Left bool
	Generation                    int64
	Replicas                      int32
	// Stable and Update are the revisions, PodHash is the revision label of new Pods, empty until it is known.
	Stable, Update, PodHash string
	// RolledBack says that its template is the one that it had before the release.
	RolledBack bool
	// ReleaseID names the release.
	ReleaseID string
	// Updated and Ready are its updated Pods, and those that are ready.
	Updated, Ready int32
	// Unscaled says that autoscalers are turned away from it.
	Unscaled bool
	// NoneOld says that it has as many Pods as it is to have, and none of them is of the stable revision.
	NoneOld bool
}

// Batch is what is seen of the BatchRelease.
type Batch struct {
	// Exists says that it is there. Resumed says that it lets the workload go, and that all Pods are updated and available.
	Exists, Resumed bool
	// Step is the step, counted from 1, whose Pods are ready by the plan of the Rollout as it is now; 0 if none is.
	Step int32
	// Allowed is the step that it may release. Paused says that it updates no further Pod.
	Allowed int32
	Paused  bool
	// Another says that it updates Pods to another template than the workload has: one that came and went while nobody looked.
	Another bool
	// Message says what its Pods wait for.
	Message string
}

// Traffic is what is seen of Services and routes.
type Traffic struct {
	// Missing says which object that leads traffic is not there; empty if all are.
	Missing string
	// Pinned says that the Service selects only old Pods, NewService that one for new Pods is there.
	Pinned, NewService bool
	// PinLeft says that some Service still selects by revision, as after an earlier release; ServiceLeft that one for new Pods is there,
	// which may be of another revision or incomplete.
	PinLeft, ServiceLeft bool
	// Routes is what the routes lead to the new version: "" as the user wrote them, else what Route returns for a step.
	Routes string
	// Joined says that the TrafficRouting leads traffic for this release; Leaving that it does so for none any more, and still restores its
	// routes.
	Joined, Leaving bool
	// Problem says what keeps traffic from being led as wanted, and what would free it; empty if nothing is known to.
	Problem string
}

// Verb is what an action does.
type Verb string

const (
	// Upgrade lets the BatchRelease release up to a step.
	Upgrade Verb = "Upgrade"
	// Hold has the BatchRelease update no further Pod, until it is to release a step again.
	Hold Verb = "Hold"
	// Pin has the Service select only old Pods.
	Pin Verb = "Pin"
	// Unpin has the Service select the Pods that it selected before the release.
	Unpin Verb = "Unpin"
	// CreateService creates the Service for new Pods.
	CreateService Verb = "CreateService"
	// RemoveService deletes it.
	RemoveService Verb = "RemoveService"
	// SetRoutes leads traffic as a step says.
	SetRoutes Verb = "SetRoutes"
	// RestoreRoutes makes the routes what they were before the release.
	RestoreRoutes Verb = "RestoreRoutes"
	// Join has the TrafficRouting lead traffic for this release, too.
	Join Verb = "Join"
	// Leave has it lead no traffic for this release any more.
	Leave Verb = "Leave"
	// Resume lets the workload go on by itself; its template decides where to.
	Resume Verb = "Resume"
	// PutBack gives the workload the Pod template of the stable revision, unless it has another one by now than the one that failed.
	PutBack Verb = "PutBack"
	// Release deletes the BatchRelease.
	Release Verb = "Release"
	// Unmark takes the mark off the workload and, in the same write, lets it go on if a change has frozen it again. It comes last.
	Unmark Verb = "Unmark"
	// Abandon takes the mark off the workload, and leaves it frozen.
	Abandon Verb = "Abandon"
	// Record writes down what the release consisted of.
	Record Verb = "Record"
)

// Action is a wanted state.
type Action struct {
	Do Verb
	// Step is the step, counted from 1, of Upgrade and SetRoutes; 0 of SetRoutes is all traffic.
	Step int32
	// Wait says that Resume is to wait until all Pods are updated and available.
	Wait bool
}

// Decision is what Next decides.
type Decision struct {
	// Status is stored before anything is done.
	Status v1beta1.RolloutStatus
	Do     []Action
	// Measure are the measurements that are to be under way; any others are given up.
	Measure []analysis.Request
	// After is when to look again without an event; 0 is never.
	After time.Duration
	// Done says that nothing keeps the Rollout from being deleted.
	Done bool
}

// Times of releases.
const (
	// settleTime is how long a release waits at its beginning, because a user may apply workload and Rollout at one moment, in either
	// order.
	settleTime = 3 * time.Second
	// recheck is when to look again at what sends no event.
	recheck = 3 * time.Second
	// recordTime is how long a release that is over waits for its record. The next one does not wait for what can't be written.
	recordTime = 10 * time.Second
	// recheckTrouble is when to try again what something keeps from its goal. What frees it mostly sends an event, and each try is written
	// to the status.
	recheckTrouble = 30 * time.Second
)

// AllTraffic is what Traffic.Routes is when all requests go to the new version.
const AllTraffic = "100%"

// Route returns what Traffic.Routes is once a step is routed; "" for a step that leads no traffic.
func Route(s v1beta1.Step) string {
	switch {
	case len(s.Matches) > 0:
		return "matches " + digest(s.Matches, s.RequestHeaderModifier)
	case s.Traffic != nil && s.RequestHeaderModifier != nil:
		return *s.Traffic + " with headers " + digest(s.RequestHeaderModifier)
	case s.Traffic != nil:
		return *s.Traffic
	}
	return ""
}
