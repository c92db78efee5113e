package steer

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// TrafficFirst returns a workload whose old template is back, in a release with traffic, such that its new Pods stay until traffic is led
// back. Anything but a Deployment in batches stays by itself.
//
// A Deployment in batches is paused, which is not enough then: where the stable ReplicaSet has spec.replicas Pods, as it has when maxSurge
// Pods are updated, the native controller takes it for the new and complete one, and scales all others to 0. So the write that brings the
// template back also annotates it. No ReplicaSet is of that template, and the native controller keeps to the sum. Promote takes the
// annotation away in the write that unpauses the Deployment.
//
//	replicas 10, maxSurge 3:
//	(10, 3) ── old template, annotated ── (10, 3) ── traffic is back ── unpaused, not annotated ── (10, 0)
func TrafficFirst(o Objects) Object {
	d, is := o.Workload.(*appsv1.Deployment)
	if !is || !isInBatches(d) || !d.Spec.Paused {
		return o.Workload
	}
	stable := noted(d, setsOf(o, d))
	if stable == nil || !SameTemplate(&stable.Spec.Template, &d.Spec.Template) {
		return o.Workload
	}
	next := copyOf(d).(*appsv1.Deployment)
	if next.Spec.Template.Annotations == nil {
		next.Spec.Template.Annotations = map[string]string{}
	}
	next.Spec.Template.Annotations[keys.TrafficFirst] = "true"
	return next
}

// IsTrafficFirst tells whether the old template of a Deployment is back and its new Pods stay until traffic is led back.
func IsTrafficFirst(d *appsv1.Deployment) bool {
	_, is := d.Spec.Template.Annotations[keys.TrafficFirst]
	return is
}

// Written returns a workload with the Pod template that its users wrote, a copy if it has another one.
func Written(workload Object) Object {
	if d, is := workload.(*appsv1.Deployment); is && IsTrafficFirst(d) {
		return written(d)
	}
	return workload
}

// written returns a Deployment with the Pod template that its users wrote. All else is shared with the one that is given.
func written(d *appsv1.Deployment) *appsv1.Deployment {
	if !IsTrafficFirst(d) {
		return d
	}
	next := *d
	annotations := maps.Clone(d.Spec.Template.Annotations)
	delete(annotations, keys.TrafficFirst)
	if len(annotations) == 0 {
		annotations = nil // none and no map are two different things to a hash
	}
	next.Spec.Template.Annotations = annotations
	return &next
}
