package progress

import (
	appsv1 "k8s.io/api/apps/v1"
)

func deployment(o *appsv1.Deployment) Progress {
	s := o.Status
	w := workload{
		seen: seen(s.ObservedGeneration, o.ObjectMeta), paused: o.Spec.Paused, replicas: value(o.Spec.Replicas, 1), pods: s.Replicas,
		available: s.AvailableReplicas, updated: s.UpdatedReplicas,
	}
	// Old Pods are counted neither as updated nor, of those that are available, apart: what is available beyond the old ones is new.
	w.expected, w.updatedAvailable = w.replicas, min(w.updated, max(s.AvailableReplicas-(s.Replicas-s.UpdatedReplicas), 0))
	get := func(name string) told {
		return conditionOf(s.Conditions, name, func(c appsv1.DeploymentCondition) told {
			return told{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime}
		})
	}
	w.fromConditions(get, string(appsv1.DeploymentReplicaFailure))
	return w.progress()
}

func nativeStatefulSet(o *appsv1.StatefulSet) Progress {
	s, update := o.Status, o.Spec.UpdateStrategy
	w := workload{
		seen: seen(s.ObservedGeneration, o.ObjectMeta), onDelete: update.Type == appsv1.OnDeleteStatefulSetStrategyType,
		replicas: value(o.Spec.Replicas, 1), pods: s.Replicas, available: s.AvailableReplicas, updated: s.UpdatedReplicas,
	}
	if s.UpdateRevision != "" && s.UpdateRevision == s.CurrentRevision {
		w.updated = s.Replicas // older versions of Kubernetes count none as updated then
	}
	w.expected = w.replicas
	if r := update.RollingUpdate; r != nil && !w.onDelete {
		w.expected = max(w.replicas-value(r.Partition, 0), 0)
	}
	w.updatedAvailable = max(w.updated-max(w.replicas-s.AvailableReplicas, 0), 0)
	return w.progress()
}

func nativeDaemonSet(o *appsv1.DaemonSet) Progress {
	s := o.Status
	w := workload{
		seen: seen(s.ObservedGeneration, o.ObjectMeta), onDelete: o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		replicas: s.DesiredNumberScheduled, pods: s.CurrentNumberScheduled, available: s.NumberAvailable, updated: s.UpdatedNumberScheduled,
	}
	w.expected, w.updatedAvailable = w.replicas, max(w.updated-max(w.replicas-s.NumberAvailable, 0), 0)
	return w.progress()
}
