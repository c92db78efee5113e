package persistentpodstate

import (
	"cmp"
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
)

// EventSource is the component that the events of all controllers of this package come from.
const EventSource = "persistentpodstate-controller"

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Scales reads the workloads of kinds that no cache has.
	Scales *observe.Scales
	// StartOrdinal heeds ordinals.start of StatefulSets of ours.
	StartOrdinal bool
}

// Kind is the controller of PersistentPodStates.
func Kind(o Options) loop.Kind[*v1beta1.PersistentPodState, Snapshot, v1beta1.PersistentPodStateStatus] {
	return loop.Kind[*v1beta1.PersistentPodState, Snapshot, v1beta1.PersistentPodStateStatus]{
		Name:   "persistentpodstate",
		Source: EventSource,
		Watches: func(cached observe.Reader) []loop.Watch {
			s := states{cached}
			return []loop.Watch{
				loop.Affected(&corev1.Pod{}, s.ofPod),
				loop.Affected[client.Object](&v1beta1.StatefulSet{}, s.ofWorkload),
				loop.Affected[client.Object](&appsv1.StatefulSet{}, s.ofWorkload),
				loop.Affected[client.Object](&v1beta1.CloneSet{}, s.ofWorkload),
			}
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.PersistentPodState) *v1beta1.PersistentPodStateStatus { return &o.Status },
		Exact:    true, // a late write would bring back a record that was dropped
	}
}

// states finds the PersistentPodStates that a change concerns.
type states struct{ observe.Reader }

func (s states) all(ctx context.Context, namespace string) ([]*v1beta1.PersistentPodState, error) {
	var list v1beta1.PersistentPodStateList
	return observe.List(ctx, s, &list, &list.Items, client.InNamespace(namespace))
}

// ofPod returns those whose records a change of a Pod may change.
func (s states) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	one := cmp.Or(after, before)
	controller := metav1.GetControllerOfNoCopy(one)
	if controller == nil || before != nil && after != nil && isSame(before, after) {
		return nil, nil
	}
	all, err := s.all(ctx, one.Namespace)
	return observe.Keys(all, func(state *v1beta1.PersistentPodState) bool { return podstate.IsFor(state, controller) }), err
}

// isSame reports whether a change of a Pod changes nothing that is recorded of it, nor whether it can be scheduled.
func isSame(a, b *corev1.Pod) bool {
	if a.ResourceVersion == b.ResourceVersion {
		return true
	}
	return a.Spec.NodeName == b.Spec.NodeName && pod.IsReady(a) == pod.IsReady(b) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Status.PodIPs, b.Status.PodIPs) &&
		equality.Semantic.DeepEqual(pod.Condition(a, corev1.PodScheduled), pod.Condition(b, corev1.PodScheduled))
}

// ofWorkload returns those of a StatefulSet or CloneSet that comes or goes, or has places for other Pods than before.
func (s states) ofWorkload(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
	is, was := after, before
	if is == nil {
		is = before
	}
	if before != nil && after != nil && slices.Equal(placesText(was), placesText(is)) {
		return nil, nil
	}
	kind := kindOf(is)
	all, err := s.all(ctx, is.GetNamespace())
	return observe.Keys(all, func(state *v1beta1.PersistentPodState) bool {
		return state.Spec.TargetRef.Name == is.GetName() && podstate.TargetOf(state) == kind
	}), err
}
