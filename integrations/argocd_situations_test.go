package integrations

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func seen(generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: generation}
}

// cloneSet returns a CloneSet of ten Pods at rest.
func cloneSet(edit func(*appsv1beta1.CloneSet)) *appsv1beta1.CloneSet {
	set := &appsv1beta1.CloneSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}, ObjectMeta: seen(3)}
	set.Spec.Replicas = ptr.To[int32](10)
	set.Status = appsv1beta1.CloneSetStatus{
		ObservedGeneration: 3, Replicas: 10, ReadyReplicas: 10, AvailableReplicas: 10, UpdatedReplicas: 10, UpdatedReadyReplicas: 10,
		UpdatedAvailableReplicas: 10, ExpectedUpdatedReplicas: 10, UpdateRevision: "web-2", CurrentRevision: "web-2",
	}
	edit(set)
	return set
}

func rolling(edit func(*appsv1beta1.RollingUpdateCloneSetStrategy)) *appsv1beta1.RollingUpdateCloneSetStrategy {
	r := &appsv1beta1.RollingUpdateCloneSetStrategy{}
	edit(r)
	return r
}

func statefulSet(edit func(*appsv1beta1.StatefulSet)) *appsv1beta1.StatefulSet {
	set := &appsv1beta1.StatefulSet{ObjectMeta: seen(3)}
	set.Spec.Replicas = ptr.To[int32](4)
	set.Status = appsv1beta1.StatefulSetStatus{
		ObservedGeneration: 3, Replicas: 4, ReadyReplicas: 4, AvailableReplicas: 4, UpdatedReplicas: 4, UpdateRevision: "b", CurrentRevision: "b",
	}
	edit(set)
	return set
}

func daemonSet(edit func(*appsv1beta1.DaemonSet)) *appsv1beta1.DaemonSet {
	set := &appsv1beta1.DaemonSet{ObjectMeta: seen(3)}
	set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled = 3, 5
	set.Status.UpdatedNumberScheduled, set.Status.NumberAvailable = 5, 5
	edit(set)
	return set
}

func release(phase rolloutsv1beta1.RolloutPhase, state rolloutsv1beta1.StepState, edit func(*rolloutsv1beta1.Rollout)) *rolloutsv1beta1.Rollout {
	r := &rolloutsv1beta1.Rollout{ObjectMeta: seen(3)}
	r.Status = rolloutsv1beta1.RolloutStatus{
		ObservedGeneration: 3, Phase: phase, Message: "so it is",
		CanaryStatus: &rolloutsv1beta1.CanaryStatus{CommonStatus: rolloutsv1beta1.CommonStatus{CurrentStepIndex: 2, CurrentStepState: state}},
	}
	edit(r)
	return r
}

func blueGreen(r *rolloutsv1beta1.Rollout) {
	r.Spec.Strategy.BlueGreen = &rolloutsv1beta1.BlueGreenStrategy{}
	r.Status.BlueGreenStatus = &rolloutsv1beta1.BlueGreenStatus{CommonStatus: r.Status.CanaryStatus.CommonStatus}
	r.Status.CanaryStatus = nil
}

func stalled(r *rolloutsv1beta1.Rollout) {
	r.Status.Conditions = append(r.Status.Conditions, rolloutsv1beta1.RolloutCondition{
		Type: rolloutsv1beta1.ConditionStalled, Status: corev1.ConditionTrue, Reason: rolloutsv1beta1.ReasonGuardFailed, Message: "new Pods fail",
	})
}

func asIs[T any](*T) {}

// situation is an object and what its health is.
type situation struct {
	kind, status string
	object       any
	// says is a part of the message.
	says string
}

func workloads() map[string]situation {
	const kind = "apps.kruise.io_CloneSet"
	half := intstr.FromString("50%")
	partly := func(set *appsv1beta1.CloneSet) {
		set.Status.UpdatedReplicas, set.Status.UpdatedReadyReplicas, set.Status.UpdatedAvailableReplicas = 3, 3, 3
		set.Status.CurrentRevision = "web-1"
	}
	condition := func(kind appsv1beta1.CloneSetConditionType, status corev1.ConditionStatus, reason, message string) func(*appsv1beta1.CloneSet) {
		return func(set *appsv1beta1.CloneSet) {
			set.Status.Conditions = []appsv1beta1.CloneSetCondition{{Type: kind, Status: status, Reason: reason, Message: message}}
		}
	}
	both := func(edits ...func(*appsv1beta1.CloneSet)) *appsv1beta1.CloneSet {
		return cloneSet(func(set *appsv1beta1.CloneSet) {
			for _, edit := range edits {
				edit(set)
			}
		})
	}
	const daemons, sets = "apps.kruise.io_DaemonSet", "apps.kruise.io_StatefulSet"
	return map[string]situation{
		"a CloneSet at rest": {kind, "Healthy", both(), "10 of 10"},
		"a CloneSet that no controller has seen": {kind, "Progressing",
			both(func(set *appsv1beta1.CloneSet) { set.Status = appsv1beta1.CloneSetStatus{} }), "not seen"},
		"a CloneSet with a newer spec": {kind, "Progressing", both(func(set *appsv1beta1.CloneSet) { set.Generation = 4 }), "not seen"},
		"a CloneSet of no Pods": {kind, "Healthy", both(func(set *appsv1beta1.CloneSet) {
			set.Spec.Replicas, set.Status = ptr.To[int32](0), appsv1beta1.CloneSetStatus{ObservedGeneration: 3}
		}), "0 of 0"},
		"a CloneSet that is being updated": {kind, "Progressing", both(partly), "3 of 10"},
		"a CloneSet whose update waits": {kind, "Progressing",
			both(partly, condition("Waiting", "True", "PodBroken", "web-1: its image can't be pulled")), "waits: web-1"},
		"a CloneSet that is paused in the middle": {kind, "Suspended", both(partly, func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate = rolling(func(r *appsv1beta1.RollingUpdateCloneSetStrategy) { r.Paused = true })
		}), "paused"},
		"a CloneSet that is paused and has nothing to do": {kind, "Healthy", both(func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate = rolling(func(r *appsv1beta1.RollingUpdateCloneSetStrategy) { r.Paused = true })
		}), ""},
		"a CloneSet that its partition holds": {kind, "Suspended", both(partly, func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate = rolling(func(r *appsv1beta1.RollingUpdateCloneSetStrategy) { r.Partition = &half })
			set.Status.ExpectedUpdatedReplicas, set.Status.UpdatedReplicas = 5, 5
		}), "5 Pods"},
		"a CloneSet past its deadline": {kind, "Degraded",
			both(partly, condition("Progressing", "False", "ProgressDeadlineExceeded", "60 s")), "60 s"},
		"a CloneSet whose Pods are refused": {kind, "Degraded", both(condition("FailedScale", "True", "", "quota")), "quota"},
		"a CloneSet that scales out":        {kind, "Progressing", both(func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = ptr.To[int32](12) }), "10 of 12"},
		"a CloneSet that updates on delete": {kind, "Healthy", both(partly, func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.Type = appsv1beta1.OnDeleteCloneSetStrategyType
		}), "10 of 10"},
		"a StatefulSet at rest": {sets, "Healthy", statefulSet(asIs), "4 of 4"},
		"a StatefulSet that its partition holds": {sets, "Suspended", statefulSet(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](3)}
			set.Status.UpdatedReplicas, set.Status.CurrentRevision = 1, "a"
		}), "3 Pods"},
		"a StatefulSet that is being updated": {sets, "Progressing", statefulSet(func(set *appsv1beta1.StatefulSet) {
			set.Status.UpdatedReplicas = 1
		}), "1 of 4"},
		"a DaemonSet at rest": {daemons, "Healthy", daemonSet(asIs), "5 of 5"},
		"a DaemonSet that is being updated": {daemons, "Progressing", daemonSet(func(set *appsv1beta1.DaemonSet) {
			set.Status.UpdatedNumberScheduled = 2
		}), "2 of 5"},
		"a DaemonSet that is paused in the middle": {daemons, "Suspended", daemonSet(func(set *appsv1beta1.DaemonSet) {
			set.Status.UpdatedNumberScheduled = 2
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSet{}
			set.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To(true)
		}), "paused"},
		"a DaemonSet on nodes that are away": {daemons, "Progressing", daemonSet(func(set *appsv1beta1.DaemonSet) {
			set.Status.NumberAvailable = 4
		}), "4 of 5"},
	}
}

func releases() map[string]situation {
	const kind = "rollouts.kruise.io_Rollout"
	const progressing, paused = rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStatePaused
	upgrade := rolloutsv1beta1.StepStateUpgrade
	return map[string]situation{
		"a Rollout at rest":                     {kind, "Healthy", release(rolloutsv1beta1.RolloutPhaseHealthy, "", asIs), ""},
		"a Rollout that updates Pods":           {kind, "Progressing", release(progressing, upgrade, asIs), "Step 2"},
		"a Rollout that waits for an approval":  {kind, "Suspended", release(progressing, paused, asIs), "Step 2"},
		"a blue-green one that updates Pods":    {kind, "Progressing", release(progressing, upgrade, blueGreen), "Step 2"},
		"a blue-green one that waits":           {kind, "Suspended", release(progressing, paused, blueGreen), "Step 2"},
		"a Rollout that is stuck":               {kind, "Degraded", release(progressing, paused, stalled), "GuardFailed: new Pods fail"},
		"a Rollout that is disabled":            {kind, "Suspended", release(rolloutsv1beta1.RolloutPhaseDisabled, "", asIs), "disabled"},
		"a Rollout that is being deleted":       {kind, "Progressing", release(rolloutsv1beta1.RolloutPhaseTerminating, "", asIs), ""},
		"a Rollout that a person holds":         {kind, "Suspended", release(progressing, upgrade, func(r *rolloutsv1beta1.Rollout) { r.Spec.Strategy.Paused = true }), "paused"},
		"a Rollout that no controller has seen": {kind, "Progressing", &rolloutsv1beta1.Rollout{ObjectMeta: seen(1)}, "not seen"},
	}
}

func others() map[string]situation {
	sidecars := func(reason string) any {
		set := &appsv1beta1.SidecarSet{ObjectMeta: seen(1)}
		set.Status.ObservedGeneration = 1
		set.Status.Conditions = []metav1.Condition{{Type: "Progressing", Reason: reason, Message: reason}}
		return set
	}
	united := func(edit func(*appsv1beta1.UnitedDeploymentStatus)) any {
		u := &appsv1beta1.UnitedDeployment{ObjectMeta: seen(1)}
		u.Spec.Replicas = ptr.To[int32](4)
		u.Status.ObservedGeneration, u.Status.Replicas, u.Status.ReadyReplicas, u.Status.UpdatedReplicas = 1, 4, 4, 4
		edit(&u.Status)
		return u
	}
	job := func(phase appsv1beta1.BroadcastJobPhase) any {
		return &appsv1beta1.BroadcastJob{Status: appsv1beta1.BroadcastJobStatus{Phase: phase, Desired: 3, Succeeded: 2, Failed: 1}}
	}
	now, pausedCron := metav1.Now(), &appsv1beta1.AdvancedCronJob{}
	pausedCron.Spec.Paused = ptr.To(true)
	pull := func(status appsv1beta1.ImagePullJobStatus) any { return &appsv1beta1.ImagePullJob{Status: status} }
	distribution := func(succeeded, failed int32) any {
		d := &appsv1beta1.ResourceDistribution{ObjectMeta: seen(1)}
		d.Status.ObservedGeneration, d.Status.Desired, d.Status.Succeeded, d.Status.Failed = 1, 3, succeeded, failed
		return d
	}
	list := &appsv1beta1.ImageListPullJob{Status: appsv1beta1.ImageListPullJobStatus{Desired: 2, Succeeded: 1, CompletionTime: &now,
		FailedImageStatuses: []*appsv1beta1.FailedImageStatus{{}}}}
	return map[string]situation{
		"a SidecarSet at rest":             {"apps.kruise.io_SidecarSet", "Healthy", sidecars("Updated"), ""},
		"a SidecarSet that is paused":      {"apps.kruise.io_SidecarSet", "Suspended", sidecars("Paused"), ""},
		"a SidecarSet that updates Pods":   {"apps.kruise.io_SidecarSet", "Progressing", sidecars("Updating"), ""},
		"a SidecarSet that can't be read":  {"apps.kruise.io_SidecarSet", "Degraded", sidecars("Invalid"), ""},
		"a UnitedDeployment at rest":       {"apps.kruise.io_UnitedDeployment", "Healthy", united(asIs), "4 of 4"},
		"a UnitedDeployment without Pods":  {"apps.kruise.io_UnitedDeployment", "Progressing", united(func(s *appsv1beta1.UnitedDeploymentStatus) { s.ReadyReplicas = 1 }), "1 of 4"},
		"a UnitedDeployment being updated": {"apps.kruise.io_UnitedDeployment", "Progressing", united(func(s *appsv1beta1.UnitedDeploymentStatus) { s.UpdatedReplicas = 1 }), "1 of 4"},
		"a UnitedDeployment with partition": {"apps.kruise.io_UnitedDeployment", "Suspended", united(func(s *appsv1beta1.UnitedDeploymentStatus) {
			s.UpdatedReplicas, s.SubsetStatuses = 1, []appsv1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Partition: 3}}
		}), "3 Pods"},
		"a UnitedDeployment that fails": {"apps.kruise.io_UnitedDeployment", "Degraded", united(func(s *appsv1beta1.UnitedDeploymentStatus) {
			s.Conditions = []appsv1beta1.UnitedDeploymentCondition{{Type: appsv1beta1.UnitedDeploymentSubsetFailure, Status: "True", Message: "zone-a"}}
		}), "zone-a"},
		"a BroadcastJob that runs":            {"apps.kruise.io_BroadcastJob", "Progressing", job("running"), "2 of 3"},
		"a BroadcastJob that is done":         {"apps.kruise.io_BroadcastJob", "Healthy", job("completed"), ""},
		"a BroadcastJob that has failed":      {"apps.kruise.io_BroadcastJob", "Degraded", job("failed"), "1 Pods"},
		"a BroadcastJob that is paused":       {"apps.kruise.io_BroadcastJob", "Suspended", job("paused"), ""},
		"a BroadcastJob that is new":          {"apps.kruise.io_BroadcastJob", "Progressing", job(""), ""},
		"an AdvancedCronJob":                  {"apps.kruise.io_AdvancedCronJob", "Healthy", &appsv1beta1.AdvancedCronJob{}, "0 jobs"},
		"an AdvancedCronJob that is paused":   {"apps.kruise.io_AdvancedCronJob", "Suspended", pausedCron, ""},
		"an ImagePullJob that pulls":          {"apps.kruise.io_ImagePullJob", "Progressing", pull(appsv1beta1.ImagePullJobStatus{Desired: 3, Succeeded: 1}), "1 of 3"},
		"an ImagePullJob that is done":        {"apps.kruise.io_ImagePullJob", "Healthy", pull(appsv1beta1.ImagePullJobStatus{Desired: 3, Succeeded: 3, CompletionTime: &now}), ""},
		"an ImagePullJob that has failed":     {"apps.kruise.io_ImagePullJob", "Degraded", pull(appsv1beta1.ImagePullJobStatus{Desired: 3, Failed: 1, CompletionTime: &now}), "1 have failed"},
		"an ImageListPullJob that has failed": {"apps.kruise.io_ImageListPullJob", "Degraded", list, "1 of 2"},
		"a ResourceDistribution at rest":      {"apps.kruise.io_ResourceDistribution", "Healthy", distribution(3, 0), ""},
		"a ResourceDistribution under way":    {"apps.kruise.io_ResourceDistribution", "Progressing", distribution(1, 0), ""},
		"a ResourceDistribution that fails":   {"apps.kruise.io_ResourceDistribution", "Degraded", distribution(2, 1), ""},
		"a WorkloadSpread":                    {"apps.kruise.io_WorkloadSpread", "Healthy", &appsv1beta1.WorkloadSpread{ObjectMeta: seen(1), Status: appsv1beta1.WorkloadSpreadStatus{ObservedGeneration: 1}}, ""},
		"a PodUnavailableBudget": {"policy.kruise.io_PodUnavailableBudget", "Healthy", &policyv1beta1.PodUnavailableBudget{
			ObjectMeta: seen(1), Status: policyv1beta1.PodUnavailableBudgetStatus{ObservedGeneration: 1},
		}, "0 Pods"},
	}
}
