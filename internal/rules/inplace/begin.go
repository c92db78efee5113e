package inplace

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// startReason is why the readiness gate is False during an update.
const startReason = "StartInPlaceUpdate"

// Target is the revision that a Pod is brought to, and how.
type Target struct {
	// Revision is the full name of the revision.
	Revision string
	// Labels are those by which the Pod says its revision.
	Labels map[string]string
	// GraceSeconds is how long the Pod is out of service before its containers change.
	GraceSeconds int32
	Now          time.Time
}

// Begin changes the Pod such that it is out of service and carries the whole plan: what is left to do can be read from the Pod alone. A change
// that touches no container is done at once, and the Pod stays in service. An update that is under way is superseded: what it has not done yet
// and the change does not undo is done along with the change.
func Begin(p *corev1.Pod, c Change, t Target) {
	left := unfinishedOn(p)
	todo := left.with(p, c)
	grace := t.GraceSeconds
	if !c.TouchesContainers() {
		// Whatever touches containers now stems from the update before.
		grace = left.grace
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	maps.Copy(p.Labels, t.Labels)
	dropPlan(p)
	writeState(p, &pub.InPlaceUpdateState{
		Revision:               t.Revision,
		UpdateTimestamp:        ceilSecond(t.Now),
		LastContainerStatuses:  left.restarting,
		UpdateEnvFromMetadata:  len(todo.metadata) > 0 || left.environment,
		UpdateResources:        len(todo.resources) > 0 || left.resize,
		UpdateImages:           len(todo.images)+len(left.restarting) > 0 || left.unseen,
		ContainerBatchesRecord: left.batches,
	})
	if !todo.touchesContainers() {
		todo.patch.apply(p)
		return
	}
	if pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && todo.restarts(p) {
		pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: startReason}, t.Now)
	}
	writePlan(p, &Planned{
		Revision:              t.Revision,
		ContainerImages:       todo.images,
		ContainerRefMetadata:  todo.metadata,
		ContainerResources:    todo.resources,
		MetaDataPatch:         todo.patch.encode(),
		UpdateEnvFromMetadata: len(todo.metadata) > 0,
		GraceSeconds:          grace,
	})
}

// ceilSecond rounds up to the precision of stored times, so that a period that is counted from it is never short.
func ceilSecond(t time.Time) metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return metav1.NewTime(whole)
}

// restarts reports whether a container restarts: a mere resize does not disturb the service.
func (d todo) restarts(p *corev1.Pod) bool {
	if len(d.images)+len(d.metadata) > 0 {
		return true
	}
	for name, changed := range d.resources {
		if container := pod.Container(p, name); container != nil && restartsForResize(container, changed) {
			return true
		}
	}
	return false
}
