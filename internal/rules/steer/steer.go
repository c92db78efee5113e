// Package steer says, for each kind of workload and each style of a release, how a release reads the workload and what it changes in it:
// how the workload is frozen when its template changes, which field says how many Pods are updated, and how it is let go.
//
// All of it is a function of objects that were read. Changed objects are copies; the caller writes the difference. Of finds the Kind.
//
//	admission        Freeze, Guard         an update of the workload is changed before it is stored
//	BatchRelease     Batch, Promote        one batch after the other, then the workload goes on by itself
//	Rollout          See, Unmark           what the state machine of package release is told; the end
package steer

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
)

// Object is any API object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are a workload and what belongs to it, as they were read. A Kind reads those that it needs.
type Objects struct {
	Workload Object
	// Pods are those that the workload controls, by itself, by its ReplicaSets or by its second Deployments.
	Pods []*corev1.Pod
	// ReplicaSets are those of a Deployment and of its second Deployments, Revisions those of a StatefulSet or DaemonSet.
	ReplicaSets []*appsv1.ReplicaSet
	Revisions   []*appsv1.ControllerRevision
	// Canaries are the second Deployments of a Deployment.
	Canaries []*appsv1.Deployment
	// Autoscalers are those that scale the workload, or did before a release has turned them away from it.
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	Now         time.Time
}

// Facts are what a release knows of a workload.
type Facts struct {
	release.Workload
	// RevisionLabel is the label of Pods by which a Service tells the versions apart, StableHash its value for old Pods, empty until it is
	// known. The value for new Pods is PodHash.
	RevisionLabel, StableHash string
	// Mixed says that there are Pods of more than one revision.
	Mixed bool
	// After is when a Pod that is ready has been so for long enough, where that counts; 0 if there is none.
	After time.Duration
}

// Change is one write. Before is nil for an object to create, After for one to delete.
type Change struct {
	Before, After Object
	// What says for people what is done.
	What string
}

// Writes are what is to be written, in this order. The writes to one object are one change.
type Writes struct {
	First []Change
	// Workload is the workload as it is wanted; the one that was read if nothing is to be changed.
	Workload Object
	Then     []Change
}

// Batch is what a batch wants.
type Batch struct {
	// Step is how many Pods are updated, as the plan says it.
	Step *intstr.IntOrString
	// Paused stops where it is: no further Pod is updated.
	Paused bool
	// Kept is how many Pods were at the wanted revision before a rollback in batches began; nil for any other release.
	Kept *int32
	// Owner refers to the BatchRelease, which owns what is created.
	Owner metav1.OwnerReference
	// Metadata is added to the Pods of a second Deployment.
	Metadata *v1beta1.PatchPodTemplateMetadata
}

// Kind steers the workloads of one kind in one style.
type Kind interface {
	// Type is the value of the label workload-type.
	Type() string
	// Refuses says why a change of the workload is not a release in steps, such as that it has no Pods; empty if it can be one.
	Refuses(o Objects) string
	// Freeze returns a workload whose template has changed such that it does not go on by itself.
	Freeze(o Objects) Object
	// Guard returns what a write that somebody makes during a release is stored as. Old is the workload before it, o.Workload after it.
	Guard(old Object, o Objects) Object
	// See returns what is known of the workload.
	See(o Objects) Facts
	// Updated returns what tells whether a Pod is of the new revision. Which one that is, for which templates may have to be compared, is
	// looked at once, and not for each Pod.
	Updated(o Objects) func(*corev1.Pod) bool
	// Planned returns how many Pods a step updates.
	Planned(o Objects, step *intstr.IntOrString) (int32, error)
	// Batch returns what has the Pods of a batch updated. It never takes an update back.
	Batch(o Objects, b Batch) (Writes, error)
	// Promote returns what lets the workload go on by itself, to where its template says.
	Promote(o Objects) Writes
	// Remains says what a workload that goes on by itself has still to do; empty once all its Pods are updated and available.
	Remains(o Objects) string
}

// Of returns how a workload of a group and kind is steered; false if releases can't steer such workloads in that style.
func Of(of schema.GroupKind, style v1beta1.RollingStyle) (Kind, bool) {
	k, ok := kinds()[key{of, style}]
	return k, ok
}

type key struct {
	schema.GroupKind
	style v1beta1.RollingStyle
}

func kinds() map[key]Kind {
	const ours = "apps.kruise.io"
	return map[key]Kind{
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, v1beta1.RollingStylePartition}:  deployments{},
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, v1beta1.RollingStyleCanary}:     canaries{},
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, v1beta1.RollingStyleBlueGreen}:  blueGreenDeployments(),
		{schema.GroupKind{Group: ours, Kind: "CloneSet"}, v1beta1.RollingStyleBlueGreen}:      blueGreenCloneSets(),
		{schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, v1beta1.RollingStylePartition}:   nativeDaemonSet{},
		{schema.GroupKind{Group: ours, Kind: "CloneSet"}, v1beta1.RollingStylePartition}:      cloneSet(),
		{schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, v1beta1.RollingStylePartition}: nativeStatefulSet(),
		{schema.GroupKind{Group: ours, Kind: "StatefulSet"}, v1beta1.RollingStylePartition}:   statefulSet(),
		{schema.GroupKind{Group: ours, Kind: "DaemonSet"}, v1beta1.RollingStylePartition}:     daemonSet(),
	}
}

// Releasable are the kinds of workloads that releases steer.
func Releasable() []schema.GroupKind {
	const ours = "apps.kruise.io"
	return []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
		{Group: ours, Kind: "CloneSet"}, {Group: ours, Kind: "StatefulSet"}, {Group: ours, Kind: "DaemonSet"},
	}
}

// Empty returns an empty workload of a kind that releases know; nil for any other.
func Empty(of schema.GroupKind) Object {
	switch of.Group + "/" + of.Kind {
	case "apps/Deployment":
		return &appsv1.Deployment{}
	case "apps/StatefulSet":
		return &appsv1.StatefulSet{}
	case "apps/DaemonSet":
		return &appsv1.DaemonSet{}
	case "apps.kruise.io/CloneSet":
		return &appsv1beta1.CloneSet{}
	case "apps.kruise.io/StatefulSet":
		return &appsv1beta1.StatefulSet{}
	case "apps.kruise.io/DaemonSet":
		return &appsv1beta1.DaemonSet{}
	}
	return nil
}

// StyleOf returns the style of a Rollout.
func StyleOf(s v1beta1.RolloutStrategy) v1beta1.RollingStyle {
	switch {
	case s.BlueGreen != nil:
		return v1beta1.RollingStyleBlueGreen
	case s.Canary != nil && s.Canary.EnableExtraWorkloadForCanary:
		return v1beta1.RollingStyleCanary
	}
	return v1beta1.RollingStylePartition
}

// StepsOf returns what a Rollout of any style says of its steps; nil if it says nothing.
func StepsOf(s *v1beta1.RolloutStrategy) *v1beta1.StepsStrategy {
	switch {
	case s.BlueGreen != nil:
		return &s.BlueGreen.StepsStrategy
	case s.Canary != nil:
		return &s.Canary.StepsStrategy
	}
	return nil
}

// count returns how many live Pods are updated, and how many of those are ready.
func count(o Objects, isUpdated func(*corev1.Pod) bool) (updated, ready int32) {
	for _, p := range o.Pods {
		if !pod.IsActive(p) || !isUpdated(p) {
			continue
		}
		updated++
		if pod.IsReady(p) {
			ready++
		}
	}
	return updated, ready
}

// available returns how many live updated Pods have been ready for a time.
func available(o Objects, isUpdated func(*corev1.Pod) bool, minReadySeconds int32) (n int32) {
	for _, p := range o.Pods {
		if is, _ := pod.Available(p, minReadySeconds, o.Now); is && pod.IsActive(p) && isUpdated(p) {
			n++
		}
	}
	return n
}

// unchanged are writes that write nothing.
func unchanged(o Objects) Writes { return Writes{Workload: o.Workload} }
