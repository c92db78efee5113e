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
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// EventSource is the component that the controller's events come from.
const EventSource = "sidecarset-controller"

// Config is what the controller works with.
type Config struct {
	Options  Options
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of SidecarSets looked after at the same time.
	Workers int
	Now     func() time.Time
}

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	ctl, err := controller.New("sidecarset", mgr, controller.Options{Reconciler: l, MaxConcurrentReconciles: c.Workers})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.SidecarSet{}, loop.OwnerEvents[*v1beta1.SidecarSet](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, PodEvents()),
		source.Kind(mgr.GetCache(), namespaceMetadata(), NamespaceEvents(mgr.GetCache())),
	} {
		if err := ctl.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// PodEvents leads from a Pod to the SidecarSets whose sidecars it holds, unless nothing changed that one of them looks at.
func PodEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return loop.AffectedEvents(func(_ context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
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
	})
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

// NamespaceEvents leads from a namespace whose labels have changed to the SidecarSets that select namespaces.
func NamespaceEvents(sets client.Reader) handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return loop.AffectedEvents(func(ctx context.Context, before, after *metav1.PartialObjectMetadata) ([]types.NamespacedName, error) {
		if before == nil || after == nil || equality.Semantic.DeepEqual(before.Labels, after.Labels) {
			return nil, nil // Pods come after their namespace and go before it
		}
		var list v1beta1.SidecarSetList
		if err := sets.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing SidecarSets: %w", err)
		}
		var concerned []types.NamespacedName
		for i := range list.Items {
			if list.Items[i].Spec.NamespaceSelector != nil {
				concerned = append(concerned, types.NamespacedName{Name: list.Items[i].Name})
			}
		}
		return concerned, nil
	})
}

// NewLoop returns the reconcile of SidecarSets, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.SidecarSet, Survey] {
	refused := &apply.Refused{Verb: plan.Update, Concern: plan.Rollout}
	statuses := apply.NewLimitedStatuses(c.Executor, statusesPerSecond)
	statuses.Final = isOver
	return &loop.Loop[*v1beta1.SidecarSet, Survey]{
		New:   func() *v1beta1.SidecarSet { return &v1beta1.SidecarSet{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, set *v1beta1.SidecarSet) (Survey, error) {
			s, err := Observe(ctx, r, set, c.Options)
			if err != nil {
				return Survey{}, err
			}
			s.Now = c.Now()
			s.Refused = refused.Present(s.Now)
			return Take(s), nil
		},
		Plan: Plan,
		Report: func(v Survey, p plan.Plan, done apply.Outcome) *v1beta1.SidecarSet {
			refused.Note(done, v.Now)
			after := v.Set.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		MinInterval: apart,
		Executor:    c.Executor,
		Statuses:    statuses,
	}
}

// statusesPerSecond is how many changed statuses of SidecarSets are written in a second in the long run. One Pod changes those of all SidecarSets that
// select it.
const statusesPerSecond = 20

const (
	// restPerPod is how long passes over a SidecarSet pause for each of its Pods. A pass takes a few millionths of a second for each, so that the
	// passes over one SidecarSet take a small share of a processor however many Pods there are.
	restPerPod = 50 * time.Microsecond
	// longestRest is the longest pause: that of 20,000 Pods and more, and that of a SidecarSet that has nothing to do but to count.
	longestRest = time.Second
)

// apart returns how long passes pause after this one.
//
// Example: over 1,000 Pods that are being updated there are at most twenty passes a second, and one when they all are up to date.
func apart(v Survey) time.Duration {
	if v.onlyCounts() {
		return longestRest
	}
	return min(time.Duration(len(v.Pods))*restPerPod, longestRest)
}
