package workloadspread

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// Targets reads what no cache has of the workloads whose Pods are spread.
type Targets interface {
	// Total returns how many Pods the workload is to have; 0 if there is none.
	Total(ctx context.Context, s *v1beta1.WorkloadSpread) (int32, error)
	// Fill returns how Pods fill the subsets; wrong says why the spec can't be understood.
	Fill(ctx context.Context, s *v1beta1.WorkloadSpread, total int32) (fill spread.Fill, wrong, err error)
	// Above returns the controllers above the controller of a Pod.
	Above(ctx context.Context, namespace string, controller *metav1.OwnerReference) ([]spread.Reference, error)
}

// Options are the choices made for the whole controller at start-up.
type Options struct {
	Targets Targets
	// SeenPods returns the resource version up to which the cache has seen Pods.
	SeenPods func(context.Context) (string, error)
	// Gone returns the entries of Pods of a WorkloadSpread that were seen and are gone; nil where nobody notes them.
	Gone func(of types.NamespacedName) map[string]bool
}

// Kind is the controller of WorkloadSpreads. The workloads of Kubernetes are watched from the first WorkloadSpread on.
func Kind(o Options) loop.Kind[*v1beta1.WorkloadSpread, Snapshot, v1beta1.WorkloadSpreadStatus] {
	return loop.Kind[*v1beta1.WorkloadSpread, Snapshot, v1beta1.WorkloadSpreadStatus]{
		Name:    "workloadspread",
		Indexes: observe.AddSpreadIndex,
		Watches: func(cached observe.Reader) []loop.Watch {
			f := finder{cached}
			watches := []loop.Watch{
				loop.Affected(&corev1.Pod{}, f.ofPod),
				loop.Affected[client.Object](&v1beta1.CloneSet{}, f.ofWorkload),
				loop.Affected[client.Object](&v1beta1.StatefulSet{}, f.ofWorkload),
			}
			for _, native := range []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &batchv1.Job{}} {
				watch := loop.Affected(native, f.ofWorkload)
				watch.Deferred = true
				watches = append(watches, watch)
			}
			return watches
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(s *v1beta1.WorkloadSpread) *v1beta1.WorkloadSpreadStatus { return &s.Status },
		Exact:    true, // room that has been given since must not be lost
		// Each creation in a large workload would have all of its Pods looked at otherwise.
		MinInterval: func(s Snapshot) time.Duration { return loop.IntervalOf(len(s.Owned)) },
	}
}

// finder finds the WorkloadSpreads that a change concerns.
type finder struct{ observe.Reader }

// ofPod returns the WorkloadSpreads that a Pod counts in, or may belong to.
func (f finder) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	if before != nil && after != nil && isSame(before, after) {
		return nil, nil
	}
	one := cmp.Or(after, before)
	spreads, err := f.Spreads(ctx, one.Namespace)
	return observe.Keys(spreads, func(s *v1beta1.WorkloadSpread) bool {
		for _, p := range []*corev1.Pod{before, after} {
			if p != nil && (isNamed(s, p) || mayOwn(spread.TargetOf(s), p)) {
				return true
			}
		}
		return false
	}), err
}

func isNamed(s *v1beta1.WorkloadSpread, p *corev1.Pod) bool {
	m, ok := spread.MatchedOf(p)
	return ok && m.Name == s.Name
}

// mayOwn reports whether a workload may be above a Pod, as far as can be told without looking for what is in between.
func mayOwn(target spread.Reference, p *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(p)
	if controller == nil {
		return false
	}
	owner := spread.ReferenceOf(controller)
	if owner.GroupKind == target.GroupKind {
		return owner == target
	}
	return spread.MayOwn(target, owner)
}

// isSame reports whether a change of a Pod changes nothing that is read of it here.
func isSame(a, b *corev1.Pod) bool {
	return a.ResourceVersion == b.ResourceVersion || pod.IsActive(a) == pod.IsActive(b) && a.UID == b.UID &&
		a.Spec.NodeName == b.Spec.NodeName && a.Annotations[keys.MatchedWorkloadSpread] == b.Annotations[keys.MatchedWorkloadSpread] &&
		a.Annotations[corev1.PodDeletionCost] == b.Annotations[corev1.PodDeletionCost] && maps.Equal(a.Labels, b.Labels) &&
		isUnschedulable(a) == isUnschedulable(b)
}

func isUnschedulable(p *corev1.Pod) bool {
	c := pod.Condition(p, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// ofWorkload returns the WorkloadSpreads of a workload that comes or goes, or of which the number of Pods or the template changes.
func (f finder) ofWorkload(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
	if before != nil && after != nil && wantsSame(before, after) {
		return nil, nil
	}
	one := cmp.Or(after, before)
	spreads, err := f.Spreads(ctx, one.GetNamespace())
	return observe.Keys(spreads, func(s *v1beta1.WorkloadSpread) bool {
		target, name := spread.TargetOf(s), one.GetName()
		if _, isReplicaSet := one.(*appsv1.ReplicaSet); isReplicaSet && spread.ThroughReplicaSets(target.GroupKind) {
			return strings.HasPrefix(name, target.Name+"-")
		}
		return target.Name == name
	}), err
}

func wantsSame(a, b client.Object) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
	return replicasOf(a) == replicasOf(b) && a.GetUID() == b.GetUID() && revisionOf(a) == revisionOf(b)
}

func replicasOf(object client.Object) int32 {
	if job, ok := object.(*batchv1.Job); ok {
		if job.Spec.Parallelism == nil {
			return 1
		}
		return *job.Spec.Parallelism
	}
	w, _ := observe.WorkloadOf(object)
	if w.Replicas == nil {
		return 1
	}
	return *w.Replicas
}

func revisionOf(object client.Object) string {
	if set, ok := object.(*v1beta1.CloneSet); ok {
		return set.Status.UpdateRevision
	}
	return object.GetAnnotations()[observe.RevisionOfDeployment]
}
