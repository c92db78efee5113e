package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// free says what frees what waits for a reason: the command or the change, and of which object. Who has found the reason may have said it
// already.
func (s Situation) free(r Reason) string {
	undo := "put the old template back: `kubectl kruise undo " + s.Arg + "`"
	pods := "the Pods that it names"
	if r.Pod != "" {
		pods = "Pod " + r.Pod
	}
	switch r.Code {
	case reason.HeldByRollout:
		return "see `kubectl kruise explain rollout/" + s.Rollout + "`"
	case reason.HeldByPause:
		return "`kubectl kruise resume " + s.Arg + "`"
	case reason.HeldByPartition:
		return fmt.Sprintf("lower the partition of %s; `kubectl kruise plan %s --set partition=0` tells what that does", s.Arg, s.Arg)
	case reason.OnDelete:
		return "delete " + pods + ", or set updateStrategy.type RollingUpdate in " + s.Arg
	case reason.WaitBudget:
		return "bring the Pods of " + s.Arg + " into service that use it up, or raise its maxUnavailable"
	case reason.WaitPUB:
		return "bring Pods of its application into service, or change that PodUnavailableBudget"
	case reason.WaitImagePull, reason.ContainerBroken:
		if r.Pod == "" {
			return "wait, or look at kruise-daemon of these nodes (kubectl -n kruise-system get pods -o wide)"
		}
		return "mend the image or the configuration that " + pods + " has (kubectl describe pod " + r.Pod + "); or " + undo
	case reason.WaitReady:
		return "look why its containers are not ready (kubectl describe pod " + r.Pod + ", kubectl logs " + r.Pod + "); or " + undo
	case reason.WaitSchedule:
		return "make room on a node that fits, or change what the template of " + s.Arg + " asks for"
	case reason.WaitDeletion:
		return "wait until its terminationGracePeriodSeconds are over, or look at its node"
	case reason.InPlaceRefused:
		return "set podUpdatePolicy InPlaceIfPossible in " + s.Arg + "; or " + undo
	case reason.QuotaExceeded:
		return "raise the ResourceQuota that is named, or delete what uses it up"
	case reason.AdmissionRefused:
		return "change " + s.Arg + " to what the policy or the webhook that is named permits, or change that"
	case reason.WebhookDown:
		return "bring the webhook that is named back, or delete its configuration"
	case reason.WaitVolumeClaim:
		return "see to its PersistentVolumeClaims: a volume that fits, or a StorageClass that makes one (kubectl describe pvc)"
	case reason.WaitEarlierOrdinal:
		return "bring the Pod into service that is named, or set podManagementPolicy Parallel"
	case reason.WaitReplacement, reason.WaitEarlierWave:
		return "bring the Pods into service that it waits for"
	case reason.WriteFailed:
		return "remove what the API server names: a quota, a missing right or object, an admission webhook"
	case reason.InvalidSpec:
		return "correct the field of " + s.Arg + " that is named"
	case reason.ControllerLag:
		return s.freeLag()
	case reason.DeadlineExceeded:
		return "mend the Pods of " + s.Arg + " that are not in service; or " + undo
	case reason.Held:
		return "it goes on when that has ended; `kubectl kruise plan " + s.Arg + "` tells what follows"
	case reason.WaitGrace, reason.WaitMinReady, reason.Updating:
		return "wait: it ends by itself"
	}
	return ""
}

// freeLag says which program has to run.
func (s Situation) freeLag() string {
	if s.Native {
		return "see to it that kube-controller-manager runs: it has not seen the spec of " + s.Arg
	}
	return "see to it that kruise-manager runs: kubectl -n kruise-system get pods"
}

// freeHook says who has to do what, for a Pod that a lifecycle hook holds.
func (s Situation) freeHook(p *corev1.Pod) string {
	name, hook, do := s.hookOf(p)
	if hook == nil {
		return "have whoever owns the hook let Pod " + p.Name + " go, or take the hook out of spec.lifecycle of " + s.Arg
	}
	return fmt.Sprintf("have whoever owns the hook %s Pod %s, or take %s out of spec.lifecycle of %s",
		strings.ReplaceAll(do, "THAT", handlers(hook)), p.Name, name, s.Arg)
}

// hookOf returns the hook that a Pod is held by, in the state that it is in, and what lets it go; no hook where the workload has none for
// that state any more.
func (s Situation) hookOf(p *corev1.Pod) (name string, hook *pub.LifecycleHook, do string) {
	if s.Lifecycle == nil {
		return "", nil, ""
	}
	const off, on = "take THAT off", "put THAT on"
	switch pod.State(p) {
	case pub.LifecycleStatePreparingUpdate:
		return "inPlaceUpdate", s.Lifecycle.InPlaceUpdate, off
	case pub.LifecycleStateUpdated:
		return "inPlaceUpdate", s.Lifecycle.InPlaceUpdate, on
	case pub.LifecycleStatePreparingDelete:
		return "preDelete", s.Lifecycle.PreDelete, off
	case pub.LifecycleStatePreparingNormal:
		return "preNormal", s.Lifecycle.PreNormal, on
	}
	return "", nil, ""
}

// handlers names the labels and finalizers of a hook.
func handlers(hook *pub.LifecycleHook) string {
	var out []string
	for key, value := range hook.LabelsHandler {
		out = append(out, "label "+key+"="+value)
	}
	for _, f := range hook.FinalizersHandler {
		out = append(out, "finalizer "+f)
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}
