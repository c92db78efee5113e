package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/workloadspread"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/spread"
)

const (
	// spreadPause is the wait before the ledger of a WorkloadSpread is tried to be written again.
	spreadPause = 5 * time.Millisecond
	// spreadPatience is how long a Pod waits for room that another manager has set aside: that one gives it back at once, if it runs.
	spreadPatience = 250 * time.Millisecond
)

// spreadsOff returns why WorkloadSpreads do nothing; empty if they do.
func (s settings) spreadsOff() string {
	if missing := s.lacking["workloadspread-controller"]; len(missing) > 0 {
		return fmt.Sprintf("the manager may not %s", strings.Join(missing, ", "))
	}
	if gate := s.off(features.PodWebhook, features.WorkloadSpread); gate != "" {
		return fmt.Sprintf("feature-gate %s is not enabled", gate)
	}
	return ""
}

// addSpreads fills in what gives new Pods to the subsets of WorkloadSpreads; nothing if the gates leave them out.
func (s *settings) addSpreads(ctx context.Context, mgr ctrlmanager.Manager, live client.Client) error {
	if s.spreadsOff() != "" {
		return nil
	}
	seen := apply.SeenBy(mgr.GetCache())
	s.seenPods = func(ctx context.Context) (string, error) { return seen(ctx, corev1.SchemeGroupVersion.WithKind("Pod")) }
	counted, err := spread.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	ledger := spread.NewLedger(spread.Config{
		Cached: mgr.GetCache(), Live: live, SeenPods: s.seenPods, Holder: rand.String(8), Pause: spreadPause, Patience: spreadPatience,
		Now: s.clock.Now, Metrics: counted,
	})
	s.spreads = &spread.Assigner{
		Ledger: ledger, Targets: &spread.Targets{Cached: mgr.GetCache(), Live: live, Namespace: s.Webhook.PodNamespace, Now: s.clock.Now},
	}
	if err := mgr.Add(ledger); err != nil {
		return fmt.Errorf("adding the ledger of WorkloadSpreads: %w", err)
	}
	pods, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("following Pods: %w", err)
	}
	spreads, err := mgr.GetCache().GetInformer(ctx, &v1beta1.WorkloadSpread{})
	if err != nil {
		return fmt.Errorf("following WorkloadSpreads: %w", err)
	}
	if _, err := pods.AddEventHandler(noting(ledger.NotePod)); err != nil {
		return fmt.Errorf("following Pods: %w", err)
	}
	prepare := s.followTargets(ctx, mgr)
	_, err = spreads.AddEventHandler(noting(func(before, after *v1beta1.WorkloadSpread) {
		prepare()
		ledger.NoteSpread(before, after)
	}))
	if err != nil {
		return fmt.Errorf("following WorkloadSpreads: %w", err)
	}
	return nil
}

// followTargets returns what has the cache follow the workloads that can be spread, from the first WorkloadSpread on: without, the first
// Pod would wait for that.
func (s settings) followTargets(ctx context.Context, mgr ctrlmanager.Manager) func() {
	started := make(chan struct{}, 1)
	return func() {
		select {
		case started <- struct{}{}:
		default:
			return
		}
		go func() {
			for _, kind := range []client.Object{
				&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &batchv1.Job{}, &v1beta1.CloneSet{},
				&v1beta1.StatefulSet{},
			} {
				if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
					log.FromContext(ctx).Error(err, "Following the workloads of WorkloadSpreads")
				}
			}
		}()
	}
}

// noting calls a function with what was before and after each event; the one or the other is nil.
func noting[T any](note func(before, after *T)) toolscache.ResourceEventHandler {
	as := func(object any) *T {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		typed, _ := object.(*T)
		return typed
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note(nil, as(object)) },
		UpdateFunc: func(before, after any) { note(as(before), as(after)) },
		DeleteFunc: func(object any) {
			if before := as(object); before != nil {
				note(before, nil)
			}
		},
	}
}

// spreadOptions returns the options of the controller of WorkloadSpreads.
func (s settings) spreadOptions() workloadspread.Options {
	o := workloadspread.Options{SeenPods: s.seenPods}
	if s.spreads != nil {
		o.Targets, o.Gone = s.spreads.Targets, s.spreads.Ledger.Gone
	}
	return o
}

// spreadKinds returns what returns the kinds that the configuration lets be spread; nil where none are.
func (s settings) spreadKinds() func(context.Context) ([]schema.GroupKind, error) {
	if s.spreads == nil {
		return nil
	}
	return func(ctx context.Context) ([]schema.GroupKind, error) {
		custom, err := s.spreads.Targets.Custom(ctx)
		var out []schema.GroupKind
		for _, kind := range custom {
			out = append(out, schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
		}
		return out, err
	}
}
