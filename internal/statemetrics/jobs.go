package statemetrics

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

func broadcastJobs() Kind {
	type job = *v1beta1.BroadcastJob
	return table[job]{
		kind: "BroadcastJob", list: func() client.ObjectList { return &v1beta1.BroadcastJobList{} },
		numbers: []number[job]{
			tally("status_desired", "Nodes that the job is for.", func(j job) int32 { return j.Status.Desired }),
			tally("status_active", "Pods under way.", func(j job) int32 { return j.Status.Active }),
			tally("status_succeeded", "Pods that have ended well.", func(j job) int32 { return j.Status.Succeeded }),
			tally("status_failed", "Pods that have failed.", func(j job) int32 { return j.Status.Failed }),
		},
		described: described{"status_phase": "1 for the phase that the job is in: running, paused, completed or failed."},
		more:      func(r *record, j job) { r.phase(string(j.Status.Phase)) },
	}.Kind()
}

func imagePullJobs() Kind {
	type job = *v1beta1.ImagePullJob
	return table[job]{
		kind: "ImagePullJob", list: func() client.ObjectList { return &v1beta1.ImagePullJobList{} },
		numbers: []number[job]{
			tally("status_desired", "Nodes that are to have the image.", func(j job) int32 { return j.Status.Desired }),
			tally("status_active", "Nodes that are pulling.", func(j job) int32 { return j.Status.Active }),
			tally("status_succeeded", "Nodes that have the image.", func(j job) int32 { return j.Status.Succeeded }),
			tally("status_failed", "Nodes that have given up.", func(j job) int32 { return j.Status.Failed }),
			yes("status_completed", "1 if the job is over, else 0.", func(j job) bool { return j.Status.CompletionTime != nil }),
		},
	}.Kind()
}

func unitedDeployments() Kind {
	type united = *v1beta1.UnitedDeployment
	return table[united]{
		kind: "UnitedDeployment", list: func() client.ObjectList { return &v1beta1.UnitedDeploymentList{} },
		numbers: []number[united]{
			tally("status_replicas", "Pods in all subsets.", func(u united) int32 { return u.Status.Replicas }),
			tally("status_replicas_ready", ready, func(u united) int32 { return u.Status.ReadyReplicas }),
			tally("status_replicas_updated", "Pods of the newest template.", func(u united) int32 { return u.Status.UpdatedReplicas }),
			tally("status_replicas_updated_ready", "Pods of the newest template that are ready.",
				func(u united) int32 { return u.Status.UpdatedReadyReplicas }),
			tally("status_reserved_pods", "Pods that wait for a node while others stand in for them.",
				func(u united) int32 { return u.Status.ReservedPods }),
			generation(func(u united) int64 { return u.Status.ObservedGeneration }),
		},
		conditions: func(u united) []condition {
			return conditionsOf(u.Status.Conditions, func(c v1beta1.UnitedDeploymentCondition) condition {
				return condition{string(c.Type), string(c.Status), c.Reason, c.LastTransitionTime}
			})
		},
		described: described{"spec_replicas": "Pods that all subsets are to have."},
		more: func(r *record, u united) {
			if u.Spec.Replicas != nil {
				r.put("spec_replicas", float64(*u.Spec.Replicas))
			}
		},
	}.Kind()
}

func workloadSpreads() Kind {
	type spread = *v1beta1.WorkloadSpread
	return table[spread]{
		kind: "WorkloadSpread", list: func() client.ObjectList { return &v1beta1.WorkloadSpreadList{} },
		numbers: []number[spread]{
			tally("status_assigned", "Pods that are in a subset.", func(s spread) int32 { return s.Status.Assigned }),
			tally("status_unassigned", "Pods that are in no subset.", func(s spread) int32 { return s.Status.Unassigned }),
			tally("status_overflow", "Pods above the limits of their subsets.", func(s spread) int32 { return s.Status.Overflow }),
			generation(func(s spread) int64 { return s.Status.ObservedGeneration }),
		},
	}.Kind()
}

func budgets() Kind {
	type budget = *policyv1beta1.PodUnavailableBudget
	return table[budget]{
		kind: "PodUnavailableBudget", list: func() client.ObjectList { return &policyv1beta1.PodUnavailableBudgetList{} },
		numbers: []number[budget]{
			tally("status_total_replicas", "Pods that there should be.", func(b budget) int32 { return b.Status.TotalReplicas }),
			tally("status_desired_available", "Pods that are to stay available.",
				func(b budget) int32 { return b.Status.DesiredAvailable }),
			tally("status_current_available", "Pods that are available.", func(b budget) int32 { return b.Status.CurrentAvailable }),
			tally("status_unavailable_allowed", "Pods that may be made unavailable now.",
				func(b budget) int32 { return b.Status.UnavailableAllowed }),
			generation(func(b budget) int64 { return b.Status.ObservedGeneration }),
		},
	}.Kind()
}
