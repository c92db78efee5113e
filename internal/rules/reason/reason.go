// Package reason is the enumeration of reasons for which a workload, a Pod or a job stands still: one for plans, conditions, metrics, the
// command line and the documentation.
//
// A Code is what programs go by; the words around it are for people and may change.
package reason

import "slices"

// Code is the reason for which something waits. Wire: conditions, metrics and scripts go by it.
type Code string

// What has come to its end, or goes on by itself.
const (
	// Nothing means that nothing is waited for.
	Nothing Code = "Nothing"
	// UpToDate is a Pod of the newest template that is in service.
	UpToDate Code = "UpToDate"
	// InService is a Pod in service of a kind whose Pods do not tell which template they have.
	InService Code = "InService"
	// Updating is what the controller works at now.
	Updating Code = "Updating"
	// WaitMinReady is ready, and not yet for minReadySeconds.
	WaitMinReady Code = "WaitMinReady"
	// WaitGrace waits for gracePeriodSeconds before its containers change.
	WaitGrace Code = "WaitGrace"
)

// What a person has ordered, or has to decide.
const (
	// HeldByPause is held by paused.
	HeldByPause Code = "HeldByPause"
	// HeldByPartition is kept at its old template by the partition.
	HeldByPartition Code = "HeldByPartition"
	// HeldByRollout is held by a Rollout that releases the workload in steps.
	HeldByRollout Code = "HeldByRollout"
	// OnDelete is a Pod that is updated when somebody deletes it.
	OnDelete Code = "OnDelete"
	// WaitApproval is a step of a Rollout, or a wave of a UnitedDeployment, that a person has to approve.
	WaitApproval Code = "WaitApproval"
	// Stopped is a Rollout or a job that does not go on by itself.
	Stopped Code = "Stopped"
	// DeadlineExceeded means that there was no progress for progressDeadlineSeconds, or that a job has taken too long.
	DeadlineExceeded Code = "DeadlineExceeded"
	// InvalidSpec is a spec that can't be carried out.
	InvalidSpec Code = "InvalidSpec"
	// InPlaceRefused is to be updated in place, and can't be.
	InPlaceRefused Code = "InPlaceRefused"
	// Conflict is what two objects want otherwise of one.
	Conflict Code = "Conflict"
	// NotInjected is a Pod that has not the sidecars of a SidecarSet that selects it.
	NotInjected Code = "NotInjected"
)

// What waits for something else of the cluster.
const (
	// WaitBudget waits for maxUnavailable, maxSurge or the parallelism.
	WaitBudget Code = "WaitBudget"
	// WaitPUB waits for a PodUnavailableBudget.
	WaitPUB Code = "WaitPUB"
	// WaitLifecycleHook waits for whoever has to let a lifecycle hook go.
	WaitLifecycleHook Code = "WaitLifecycleHook"
	// WaitEarlierOrdinal waits for a Pod of a StatefulSet that comes before it.
	WaitEarlierOrdinal Code = "WaitEarlierOrdinal"
	// WaitEarlierWave waits for the subsets of a wave of a UnitedDeployment that come before it.
	WaitEarlierWave Code = "WaitEarlierWave"
	// WaitReplacement stays until the Pod that takes its place is available.
	WaitReplacement Code = "WaitReplacement"
	// WaitVolumeClaim waits for a PersistentVolumeClaim.
	WaitVolumeClaim Code = "WaitVolumeClaim"
	// WaitDeletion is being deleted.
	WaitDeletion Code = "WaitDeletion"
	// DeletionProtected is not deleted, because a rule of deletion protection forbids it.
	DeletionProtected Code = "DeletionProtected"
	// WaitSchedule has no node.
	WaitSchedule Code = "WaitSchedule"
	// NodeNotReady is on a node that does not answer.
	NodeNotReady Code = "NodeNotReady"
	// WaitImagePull has a container whose image can't be pulled, or is being pulled.
	WaitImagePull Code = "WaitImagePull"
	// ContainerBroken has a container that does not start or does not stay up.
	ContainerBroken Code = "ContainerBroken"
	// WaitReady is not ready for a reason that its kubelet does not name.
	WaitReady Code = "WaitReady"
	// ClusterUnreachable waits for another cluster.
	ClusterUnreachable Code = "ClusterUnreachable"
	// Held is held back by another rule, which the words name.
	Held Code = "Held"
)

// What fails, and is tried again.
const (
	// ControllerLag means that the controller has not seen the present spec.
	ControllerLag Code = "ControllerLag"
	// QuotaExceeded is a write that a ResourceQuota refuses.
	QuotaExceeded Code = "QuotaExceeded"
	// AdmissionRefused is a write that an admission webhook or a policy refuses.
	AdmissionRefused Code = "AdmissionRefused"
	// WebhookDown is a write that fails because an admission webhook does not answer.
	WebhookDown Code = "WebhookDown"
	// WriteFailed is a write that fails for another reason.
	WriteFailed Code = "WriteFailed"
)

// Rank is the order in which reasons matter where several hold: what a person has to mend, what waits for others, what ends by itself, what
// is wanted so. A reason that is none of a Pod comes before all, with -1.
func (c Code) Rank() int {
	return slices.Index([]Code{
		NodeNotReady, WaitImagePull, ContainerBroken, WaitVolumeClaim, WaitSchedule, InPlaceRefused, WaitLifecycleHook, WaitReady,
		WaitDeletion,
		WaitGrace, WaitMinReady, Updating, WaitPUB, WaitEarlierOrdinal, WaitEarlierWave,
		WaitReplacement, Held, WaitBudget, HeldByRollout, HeldByPause, OnDelete,
		HeldByPartition,
	}, c)
}

// OutOfService reports whether a reason is that of a Pod that is not in service.
func (c Code) OutOfService() bool {
	at := c.Rank()
	return at >= 0 && at <= WaitMinReady.Rank() && c != InPlaceRefused
}

// Stuck reports whether somebody has to mend something before it goes on.
func (c Code) Stuck() bool {
	return slices.Contains([]Code{
		NodeNotReady, WaitImagePull, ContainerBroken, WaitVolumeClaim, WaitSchedule, InPlaceRefused, ClusterUnreachable, DeletionProtected,
		Conflict,
		Stopped, DeadlineExceeded, InvalidSpec, ControllerLag, QuotaExceeded, AdmissionRefused, WebhookDown, WriteFailed,
	}, c)
}

// NeedsPerson reports whether nothing goes on until the person says so who has ordered it.
func (c Code) NeedsPerson() bool {
	switch c {
	case HeldByPause, OnDelete, WaitApproval:
		return true
	}
	return false
}
