package sidecarset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Namespace is where the revisions of SidecarSets are kept.
	Namespace string
}

// Kind is the controller of SidecarSets.
func Kind(o Options) loop.Kind[*v1beta1.SidecarSet, State, v1beta1.SidecarSetStatus] {
	refused := &apply.Refused{Verb: plan.Update, Concern: plan.Rollout}
	return loop.Kind[*v1beta1.SidecarSet, State, v1beta1.SidecarSetStatus]{
		Name:     "sidecarset",
		Disrupts: true,
		Watches: func(cached observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Affected(&corev1.Pod{}, setsOfPod), loop.Affected(namespaceMetadata(), finder{cached}.ofNamespace)}
		},
		Read: func(ctx context.Context, r loop.Reads, set *v1beta1.SidecarSet) (State, error) {
			s, err := o.read(ctx, r, set)
			if err != nil {
				return State{}, err
			}
			s.Refused = refused.Present(set.UID, r.Now)
			return Classify(s), nil
		},
		Plan:              Plan,
		Status:            Status,
		StatusOf:          func(o *v1beta1.SidecarSet) *v1beta1.SidecarSetStatus { return &o.Status },
		Remember:          func(v State, done apply.Outcome) { refused.Note(v.Set.UID, done, v.Now) },
		Final:             isOver,
		StatusesPerSecond: statusesPerSecond,
		MinInterval:       minInterval,
	}
}

// setsOfPod names the SidecarSets whose sidecars a Pod holds, unless nothing changed that one of them looks at.
func setsOfPod(_ context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	if before != nil && after != nil && isSame(before, after) {
		return nil, nil
	}
	var names []string
	for _, p := range []*corev1.Pod{before, after} {
		if p != nil {
			names = append(names, sidecar.InjectedBy(p.Annotations)...)
		}
	}
	slices.Sort(names)
	var sets []types.NamespacedName
	for _, name := range slices.Compact(names) {
		sets = append(sets, types.NamespacedName{Name: name})
	}
	return sets, nil
}

// isSame reports whether two versions of a Pod look the same to a SidecarSet.
func isSame(a, b *corev1.Pod) bool {
	return a.UID == b.UID && a.Generation == b.Generation &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status, b.Status)
}

// finder looks SidecarSets up in a cache.
type finder struct{ client.Reader }

// ofNamespace returns the SidecarSets that select namespaces, when the labels of a namespace have changed.
func (f finder) ofNamespace(ctx context.Context, before, after *metav1.PartialObjectMetadata) ([]types.NamespacedName, error) {
	if before == nil || after == nil || equality.Semantic.DeepEqual(before.Labels, after.Labels) {
		return nil, nil // Pods come after their namespace and go before it
	}
	var list v1beta1.SidecarSetList
	if err := f.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing SidecarSets: %w", err)
	}
	var concerned []types.NamespacedName
	for i := range list.Items {
		if list.Items[i].Spec.NamespaceSelector != nil {
			concerned = append(concerned, types.NamespacedName{Name: list.Items[i].Name})
		}
	}
	return concerned, nil
}

// statusesPerSecond is how many changed statuses of SidecarSets are written in a second in the long run. One Pod changes those of all
// SidecarSets that select it.
const statusesPerSecond = 20

// minInterval returns how long passes pause after this one: as long as may be when there is nothing to do but to count.
func minInterval(v State) time.Duration {
	if v.onlyCounts() {
		return loop.LongestInterval
	}
	return loop.IntervalOf(len(v.Pods))
}
