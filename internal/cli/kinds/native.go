package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
)

// native returns the workloads of Kubernetes.
func native() []Kind {
	template, selector := []string{"spec", "template"}, []string{"spec", "selector"}
	return []Kind{
		{
			GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Paused: []string{"spec", "paused"},
			Template: template, Selector: selector, Revisions: ReplicaSets, as: as[appsv1.Deployment],
		},
		{
			GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets",
			Template: template, Selector: selector, Revisions: ControllerRevisions, as: as[appsv1.StatefulSet],
		},
		{
			GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets",
			Template: template, Selector: selector, Revisions: ControllerRevisions, as: as[appsv1.DaemonSet],
		},
		{
			GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Resource: "jobs", Paused: []string{"spec", "suspend"},
			Selector: selector, as: as[batchv1.Job],
		},
	}
}
