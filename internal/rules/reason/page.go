package reason

import (
	"fmt"
	"strings"
)

// Entry is what the documentation says of a code.
type Entry struct {
	Code Code
	// Holds is what holds it, and Frees what frees it; nothing has to be freed where that is empty.
	Holds, Frees string
	// Shown are conditions and events that tell of it besides `explain`: TYPE=REASON, or event REASON.
	Shown []string
}

// All returns the codes with what is said of them, in the order in which they are explained.
func All() []Entry {
	return append(append(append(resting(), ordered()...), waiting()...), failing()...)
}

func resting() []Entry {
	return []Entry{
		{Nothing, "nothing: all is as it is wanted", "", []string{"Waiting=Nothing"}},
		{UpToDate, "nothing: a Pod that has the newest template and is in service", "", nil},
		{InService, "nothing: a Pod of a UnitedDeployment, which does not tell which template it has", "", nil},
		{Updating, "nothing: the controller works at it", "it ends by itself", []string{"Progressing=<KIND>Updated"}},
		{WaitMinReady, "`minReadySeconds`", "it ends by itself", []string{"Waiting=WaitMinReady"}},
		{WaitGrace, "`gracePeriodSeconds` before containers change in place", "it ends by itself", []string{"Waiting=WaitGrace"}},
	}
}

func ordered() []Entry {
	return []Entry{
		{HeldByPause, "a pause", "`kubectl kruise resume`", []string{"Progressing=<KIND>Paused"}},
		{HeldByPartition, "the partition, or `partitionedScaling`",
			"lower it; `kubectl kruise plan --set partition=0` tells what that does",
			[]string{"Progressing=ProgressPartitionAvailable"}},
		{HeldByRollout, "the Rollout that releases it, which is named", "`kubectl kruise explain` of that", nil},
		{OnDelete, "the type of its update strategy", "delete the Pods, or set `RollingUpdate`", nil},
		{WaitApproval, "a step of a Rollout, or a wave of a UnitedDeployment, that a person has to let go on",
			"`kubectl kruise approve` or `abort`; the annotation that is named", []string{"SubsetUpdated=WavePaused",
				"Progressing=InRolling"}},
		{Stopped, "a Rollout that an analysis, the guard or a rolled back revision has stopped; a job that has failed",
			"`kubectl kruise retry`, `approve` or `abort`; a job is created anew",
			[]string{"Progressing=AnalysisFailed", "Progressing=GuardFailed", "Progressing=Rejected", "Failed=<REASON>"}},
		{DeadlineExceeded, "no progress for `progressDeadlineSeconds`, and no Pod tells why", "mend the Pods, or `kubectl kruise undo`",
			[]string{"Progressing=ProgressDeadlineExceeded", "Progressing=StepTimeout"}},
		{InvalidSpec, "a field that can't be carried out, which is named", "correct the field", nil},
		{InPlaceRefused, "it may only be updated in place, and can't be: the field is named",
			"another `podUpdatePolicy`, or `kubectl kruise undo`; for a SidecarSet recreate the Pods",
			[]string{"FailedUpdate=Failed", "Progressing=ImmutableFieldChanged", "event FailedUpdatePodInPlace"}},
		{Conflict, "another object that wants otherwise, which is named", "change one of the two", nil},
		{NotInjected, "the Pod was created before the SidecarSet, or something keeps it out, which is named",
			"recreate the Pod, or change the SidecarSet", nil},
	}
}

func waiting() []Entry {
	return []Entry{
		{WaitBudget, "`maxUnavailable`, `maxSurge`, `burstReplicas` or `parallelism` is used up", "bring Pods into service, or raise it",
			[]string{"SubsetUpdated=WaitingForBudget"}},
		{WaitPUB, "a PodUnavailableBudget, which is named", "bring Pods of its application into service, or change it",
			[]string{"Waiting=WaitPUB"}},
		{WaitLifecycleHook, "a hook of `spec.lifecycle`", "its owner takes the label or finalizer that is named off the Pod, or puts it on",
			[]string{"Waiting=WaitLifecycleHook"}},
		{WaitEarlierOrdinal, "a Pod of a StatefulSet that comes before it, which is named: `OrderedReady`",
			"bring that Pod into service, or use `Parallel` for new StatefulSets", nil},
		{WaitEarlierWave, "subsets of a UnitedDeployment that come before, which are named", "bring their Pods into service",
			[]string{"SubsetUpdated=WaitingForWave"}},
		{WaitReplacement, "the Pod that takes its place is not available yet", "bring that Pod into service", nil},
		{WaitVolumeClaim, "a PersistentVolumeClaim that is not bound, grows, or is on its way out",
			"a volume that fits, or a StorageClass that makes one",
			[]string{"Waiting=WaitVolumeClaim"}},
		{WaitDeletion, "it is being deleted; its finalizers are named", "the owners of the finalizers take them off",
			[]string{"Waiting=WaitDeletion"}},
		{DeletionProtected, "a rule of deletion protection", "the label that is named, or fewer objects behind it", nil},
		{WaitSchedule, "no node fits, with the scheduler's words", "make room, or change what the template asks for",
			[]string{"Waiting=WaitSchedule"}},
		{NodeNotReady, "its node, which is named, does not answer", "bring the node back, or remove it", []string{"Waiting=NodeNotReady"}},
		{WaitImagePull, "an image that can't be pulled, or is pulled slowly", "mend it (`kubectl describe pod`), or `kubectl kruise undo`",
			[]string{"Waiting=WaitImagePull"}},
		{ContainerBroken, "a container that does not start or does not stay up", "mend it (`kubectl logs`), or `kubectl kruise undo`",
			[]string{"Waiting=ContainerBroken"}},
		{WaitReady, "its containers are not ready", "`kubectl describe pod`, `kubectl logs`, or `kubectl kruise undo`",
			[]string{"Waiting=WaitReady"}},
		{ClusterUnreachable, "another cluster does not answer, which is named", "bring the cluster back, or give it up", nil},
		{Held, "another rule, in its controller's words, such as sidecars that are updated", "it goes on when that has ended", nil},
	}
}

func failing() []Entry {
	return []Entry{
		{ControllerLag, "its controller has not seen the present spec",
			"the manager has to run: kruise-manager, that of Rollouts, or kube-controller-manager", nil},
		{QuotaExceeded, "a ResourceQuota, which is named", "raise it, or delete what uses it up", []string{"FailedScale=Failed",
			"FailedCreatePod=Failed"}},
		{AdmissionRefused, "an admission webhook or a policy that refuses the write, with its words",
			"change what it names, or change the policy",
			[]string{"FailedScale=Failed", "FailedUpdate=Failed"}},
		{WebhookDown, "an admission webhook that does not answer, which is named", "bring it back, or delete its configuration",
			[]string{"FailedScale=Failed", "FailedUpdate=Failed"}},
		{WriteFailed, "what the API server refuses for another reason: a missing right or object", "remove what its message names",
			[]string{"FailedScale=Failed", "FailedUpdate=Failed"}},
	}
}

// Page returns the page of the documentation.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Reasons

<!-- Written by: go test ./internal/rules/reason -update -->

Why a workload, a Pod or a job stands still is told by one of these reasons, the same ones in ` + "`kubectl kruise explain`, `overview` and `tree`" + `, in the condition
` + "`Waiting`" + `, and in metrics. The reasons of conditions that other tools know, such as ` + "`Progressing`" + `, keep their names; the last column says which of them tell
of the same.

| reason | what holds it | what frees it | conditions and events that tell of it |
| --- | --- | --- | --- |
`)
	for _, e := range All() {
		shown := make([]string, len(e.Shown))
		for i, one := range e.Shown {
			event, is := strings.CutPrefix(one, "event ")
			shown[i] = "`" + one + "`"
			if is {
				shown[i] = "event `" + event + "`"
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Code, e.Holds, e.Frees, strings.Join(shown, ", "))
	}
	return b.String()
}
