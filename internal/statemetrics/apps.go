package statemetrics

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// Apps returns the metrics of the kinds of apps.kruise.io and policy.kruise.io, by the names of the controllers without which the kind is
// not in the cache.
func Apps() map[string]Kind {
	return map[string]Kind{
		"cloneset-controller": cloneSets(), "statefulset-controller": statefulSets(), "daemonset-controller": daemonSets(),
		"sidecarset-controller": sidecarSets(), "broadcastjob-controller": broadcastJobs(),
		"uniteddeployment-controller": unitedDeployments(), "workloadspread-controller": workloadSpreads(),
		"imagepulljob-controller": imagePullJobs(), "podunavailablebudget-controller": budgets(),
	}
}

const (
	ready  = "Pods that are ready."
	paused = "1 while updateStrategy pauses the update, else 0."
)

// replicas is what CloneSets and StatefulSets say alike.
type replicas struct {
	wanted, partition, toUpdate                                    int32
	paused                                                         bool
	all, ready, available, updated, updatedReady, updatedAvailable int32
}

// ofReplicas are the metrics that CloneSets and StatefulSets have in common.
func ofReplicas[O client.Object](of func(O) replicas) []number[O] {
	counted := func(name, help string, which func(replicas) int32) number[O] {
		return tally(name, help, func(o O) int32 { return which(of(o)) })
	}
	return []number[O]{
		counted("spec_replicas", "Pods that it is to have.", func(r replicas) int32 { return r.wanted }),
		counted("spec_strategy_partition", "Pods that are to stay at older revisions.", func(r replicas) int32 { return r.partition }),
		yes("spec_strategy_paused", paused, func(o O) bool { return of(o).paused }),
		counted("status_replicas", "Pods that it has.", func(r replicas) int32 { return r.all }),
		counted("status_replicas_ready", ready, func(r replicas) int32 { return r.ready }),
		counted("status_replicas_available", "Pods that have been ready for minReadySeconds.",
			func(r replicas) int32 { return r.available }),
		counted("status_replicas_updated", "Pods of the update revision.", func(r replicas) int32 { return r.updated }),
		counted("status_replicas_updated_ready", "Pods of the update revision that are ready.",
			func(r replicas) int32 { return r.updatedReady }),
		counted("status_replicas_updated_available", "Pods of the update revision that are available.",
			func(r replicas) int32 { return r.updatedAvailable }),
	}
}

// byState are the Pods by their state.
func (r replicas) byState() map[string]int32 {
	return map[string]int32{
		"desired": r.wanted, "current": r.all, "ready": r.ready, "available": r.available,
		"updated": r.updated, "updated_available": r.updatedAvailable, "to_update": r.toUpdate,
	}
}

func cloneSetReplicas(set *v1beta1.CloneSet) replicas {
	s, wanted := set.Status, ptr.Deref(set.Spec.Replicas, 1)
	rolling := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
	// A partition that can't be read is refused when it is written, and shows in the condition FailedUpdate.
	partition, _ := budget.Partition(rolling.Partition, int(wanted))
	return replicas{
		wanted: wanted, partition: int32(partition), toUpdate: s.ExpectedUpdatedReplicas, //nolint:gosec // no more than the replicas
		paused: rolling.Paused, all: s.Replicas, ready: s.ReadyReplicas, available: s.AvailableReplicas, updated: s.UpdatedReplicas,
		updatedReady: s.UpdatedReadyReplicas, updatedAvailable: s.UpdatedAvailableReplicas,
	}
}

func cloneSets() Kind { //nolint:dupl // StatefulSets have other types, with fields of the same names
	type set = *v1beta1.CloneSet
	return table[set]{
		kind: "CloneSet", list: func() client.ObjectList { return &v1beta1.CloneSetList{} },
		numbers: append(ofReplicas(cloneSetReplicas),
			tally("status_replicas_expected_updated", "Pods that the update revision is wanted on.",
				func(s set) int32 { return s.Status.ExpectedUpdatedReplicas }),
			generation(func(s set) int64 { return s.Status.ObservedGeneration })),
		conditions: func(s set) []condition {
			return conditionsOf(s.Status.Conditions, func(c v1beta1.CloneSetCondition) condition {
				return condition{string(c.Type), string(c.Status), c.Reason, c.LastTransitionTime}
			})
		},
		pods: func(s set) map[string]int32 { return cloneSetReplicas(s).byState() },
	}.Kind()
}

func statefulSetReplicas(set *v1beta1.StatefulSet) replicas {
	s, wanted := set.Status, ptr.Deref(set.Spec.Replicas, 1)
	rolling := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
	partition := min(max(ptr.Deref(rolling.Partition, 0), 0), wanted)
	return replicas{
		wanted: wanted, partition: partition, toUpdate: wanted - partition, paused: rolling.Paused, all: s.Replicas, ready: s.ReadyReplicas,
		available: s.AvailableReplicas, updated: s.UpdatedReplicas, updatedReady: s.UpdatedReadyReplicas,
		updatedAvailable: s.UpdatedAvailableReplicas,
	}
}

func statefulSets() Kind { //nolint:dupl // CloneSets have other types, with fields of the same names
	type set = *v1beta1.StatefulSet
	return table[set]{
		kind: "StatefulSet", list: func() client.ObjectList { return &v1beta1.StatefulSetList{} },
		numbers: append(ofReplicas(statefulSetReplicas),
			tally("status_replicas_current", "Pods of the current revision.", func(s set) int32 { return s.Status.CurrentReplicas }),
			generation(func(s set) int64 { return s.Status.ObservedGeneration })),
		conditions: func(s set) []condition {
			return conditionsOf(s.Status.Conditions, func(c v1beta1.StatefulSetCondition) condition {
				return condition{string(c.Type), string(c.Status), c.Reason, c.LastTransitionTime}
			})
		},
		pods: func(s set) map[string]int32 { return statefulSetReplicas(s).byState() },
	}.Kind()
}

func daemonSets() Kind {
	type set = *v1beta1.DaemonSet
	return table[set]{
		kind: "DaemonSet", list: func() client.ObjectList { return &v1beta1.DaemonSetList{} },
		numbers: []number[set]{
			yes("spec_strategy_paused", paused, func(s set) bool {
				rolling := s.Spec.UpdateStrategy.RollingUpdate
				return rolling != nil && ptr.Deref(rolling.Paused, false)
			}),
			tally("status_desired_number_scheduled", "Nodes that should run a Pod.",
				func(s set) int32 { return s.Status.DesiredNumberScheduled }),
			tally("status_current_number_scheduled", "Nodes that should run a Pod and have one.",
				func(s set) int32 { return s.Status.CurrentNumberScheduled }),
			tally("status_number_misscheduled", "Nodes that should not run a Pod and have one.",
				func(s set) int32 { return s.Status.NumberMisscheduled }),
			tally("status_number_ready", "Nodes whose Pod is ready.", func(s set) int32 { return s.Status.NumberReady }),
			tally("status_number_available", "Nodes whose Pod is available.", func(s set) int32 { return s.Status.NumberAvailable }),
			tally("status_number_unavailable", "Nodes that should run a Pod and have none that is available.",
				func(s set) int32 { return s.Status.NumberUnavailable }),
			tally("status_updated_number_scheduled", "Nodes whose Pod is of the update revision.",
				func(s set) int32 { return s.Status.UpdatedNumberScheduled }),
			generation(func(s set) int64 { return s.Status.ObservedGeneration }),
		},
		conditions: func(s set) []condition {
			return conditionsOf(s.Status.Conditions, func(c appsv1.DaemonSetCondition) condition {
				return condition{string(c.Type), string(c.Status), c.Reason, c.LastTransitionTime}
			})
		},
		pods: func(s set) map[string]int32 {
			return map[string]int32{
				"desired": s.Status.DesiredNumberScheduled, "current": s.Status.CurrentNumberScheduled, "ready": s.Status.NumberReady,
				"available": s.Status.NumberAvailable, "updated": s.Status.UpdatedNumberScheduled,
			}
		},
	}.Kind()
}

func sidecarSets() Kind {
	type set = *v1beta1.SidecarSet
	return table[set]{
		kind: "SidecarSet", scope: clusterWide, list: func() client.ObjectList { return &v1beta1.SidecarSetList{} },
		numbers: []number[set]{
			yes("spec_strategy_paused", paused, func(s set) bool { return s.Spec.UpdateStrategy.Paused }),
			yes("spec_injection_paused", "1 while new Pods get no sidecars, else 0.",
				func(s set) bool { return s.Spec.InjectionStrategy.Paused }),
			tally("status_matched_pods", "Pods that have its sidecars.", func(s set) int32 { return s.Status.MatchedPods }),
			tally("status_updated_pods", "Pods whose sidecars are those of the present spec.",
				func(s set) int32 { return s.Status.UpdatedPods }),
			tally("status_ready_pods", "Pods with its sidecars that are ready.", func(s set) int32 { return s.Status.ReadyPods }),
			tally("status_updated_ready_pods", "Pods that are both updated and ready.",
				func(s set) int32 { return s.Status.UpdatedReadyPods }),
			tally("status_not_upgradable_pods", "Pods that keep older sidecars until they are created anew.",
				func(s set) int32 { return s.Status.NotUpgradablePods }),
			generation(func(s set) int64 { return s.Status.ObservedGeneration }),
		},
		conditions: func(s set) []condition { return conditionsOf(s.Status.Conditions, standard) },
	}.Kind()
}
