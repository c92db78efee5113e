// Package explain says why a workload stands still: one cause, what would free it, and a reason for each of its Pods.
//
// It is pure. What the controller would do now is its own plan, and why a Pod is not in service is the function by which controllers write
// condition Waiting.
package explain

// Code is the reason for which something waits. Wire: programs go by it.
type Code string

const (
	// UpToDate is a Pod of the newest template that is in service.
	UpToDate Code = "UpToDate"
	// InService is a Pod in service of a kind whose Pods do not tell which template they have.
	InService Code = "InService"
	// Updating is a Pod that the controller changes now.
	Updating Code = "Updating"
	// HeldByPause is held by paused.
	HeldByPause Code = "HeldByPause"
	// HeldByPartition is kept at its old template by the partition.
	HeldByPartition Code = "HeldByPartition"
	// HeldByRollout is held by a Rollout that releases the workload in steps.
	HeldByRollout Code = "HeldByRollout"
	// OnDelete is a Pod that is updated when somebody deletes it.
	OnDelete Code = "OnDelete"
	// WaitBudget waits for maxUnavailable or maxSurge.
	WaitBudget Code = "WaitBudget"
	// WaitPUB waits for a PodUnavailableBudget.
	WaitPUB Code = "WaitPUB"
	// WaitLifecycleHook waits for whoever has to let a lifecycle hook go.
	WaitLifecycleHook Code = "WaitLifecycleHook"
	// WaitGrace waits for gracePeriodSeconds before its containers change.
	WaitGrace Code = "WaitGrace"
	// WaitDeletion is being deleted.
	WaitDeletion Code = "WaitDeletion"
	// WaitSchedule has no node.
	WaitSchedule Code = "WaitSchedule"
	// WaitImagePull has a container whose image can't be pulled.
	WaitImagePull Code = "WaitImagePull"
	// ContainerBroken has a container that does not start or does not stay up.
	ContainerBroken Code = "ContainerBroken"
	// WaitReady is not ready for a reason that its kubelet does not name.
	WaitReady Code = "WaitReady"
	// WaitMinReady is ready, and not yet for minReadySeconds.
	WaitMinReady Code = "WaitMinReady"
	// NodeNotReady is on a node that does not answer.
	NodeNotReady Code = "NodeNotReady"
	// InPlaceRefused is to be updated in place, and can't be.
	InPlaceRefused Code = "InPlaceRefused"
	// Held is held back by another rule, which the words name.
	Held Code = "Held"
	// WriteFailed is a write of the controller that the API server refuses.
	WriteFailed Code = "WriteFailed"
	// InvalidSpec is a spec that can't be read.
	InvalidSpec Code = "InvalidSpec"
	// ControllerLag means that the controller has not seen the present spec.
	ControllerLag Code = "ControllerLag"
	// DeadlineExceeded means that there was no progress for progressDeadlineSeconds.
	DeadlineExceeded Code = "DeadlineExceeded"
	// WaitApproval is a step of a Rollout, or a wave of a UnitedDeployment, that a person has to approve.
	WaitApproval Code = "WaitApproval"
	// Stopped is a Rollout or a job that does not go on by itself.
	Stopped Code = "Stopped"
	// Nothing means that nothing is waited for.
	Nothing Code = "Nothing"
)
