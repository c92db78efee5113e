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
	// InPlaceRefused is to be updated in place only, and can't be.
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
	// WaitApproval is a step of a Rollout that a person has to approve.
	WaitApproval Code = "WaitApproval"
	// Stopped is a Rollout that does not go on by itself.
	Stopped Code = "Stopped"
	// Nothing means that nothing is waited for.
	Nothing Code = "Nothing"
)

// Advice says what frees a Pod or a workload that waits for a reason. The name stands for the argument that names the workload.
func Advice(c Code, arg string) string {
	undo := "put the old template back: `kubectl kruise undo " + arg + "`"
	switch c {
	case HeldByPause:
		return "`kubectl kruise resume " + arg + "`"
	case HeldByPartition:
		return "lower the partition"
	case OnDelete:
		return "delete the Pods, or set updateStrategy.type RollingUpdate"
	case WaitBudget:
		return "bring the Pods into service that use it up, or raise maxUnavailable"
	case WaitPUB:
		return "bring Pods of its application into service, or change the PodUnavailableBudget"
	case WaitLifecycleHook:
		return "have whoever owns the hook take its label or finalizer off (or, for preNormal, put it on), or take the hook out of spec.lifecycle"
	case WaitImagePull, ContainerBroken:
		return "mend the image or the configuration that the Pod names; or " + undo
	case WaitReady:
		return "look why its containers are not ready (kubectl describe pod, kubectl logs); or " + undo
	case WaitSchedule:
		return "make room on a node that fits, or change what the Pod asks for"
	case NodeNotReady:
		return "bring the node back, or remove it from the cluster so that its Pods go"
	case WaitDeletion:
		return "wait for terminationGracePeriodSeconds; a finalizer has to be taken off by its owner"
	case InPlaceRefused:
		return "set podUpdatePolicy InPlaceIfPossible; or " + undo
	case WriteFailed:
		return "remove what the API server names: a quota, a missing right or object, an admission webhook"
	case InvalidSpec:
		return "correct the field that is named"
	case ControllerLag:
		return "see to it that kruise-manager runs: kubectl -n kruise-system get pods"
	case DeadlineExceeded:
		return "mend the Pods below; or " + undo
	case WaitGrace, WaitMinReady, Updating:
		return "wait: it ends by itself"
	}
	return ""
}
