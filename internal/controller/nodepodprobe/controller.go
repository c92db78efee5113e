package nodepodprobe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventSource is the component that the controller's events come from.
const EventSource = "nodepodprobe-controller"

// ByNode is the index of Pods by the name of their node. The API server knows a field of this name, too.
const ByNode = "spec.nodeName"

// Options are the gates that the controller heeds.
type Options struct {
	// Virtual also heeds the results that providers of virtual nodes write on Pods themselves.
	Virtual bool
}

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager.
func Add(mgr manager.Manager, c Config) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, ByNode, func(object client.Object) []string {
		return []string{object.(*corev1.Pod).Spec.NodeName}
	})
	if err != nil {
		return fmt.Errorf("indexing Pods by node: %w", err)
	}
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	affected := nodes{Reader: mgr.GetCache(), forget: l.Forget}
	return loop.Controller{Name: "nodepodprobe", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(affected.ofNode)),
		source.Kind(mgr.GetCache(), &v1alpha1.NodePodProbe{}, loop.AffectedEvents(affected.ofProbes)),
		source.Kind(mgr.GetCache(), &v1alpha1.PodProbeMarker{}, loop.AffectedEvents(affected.ofMarker)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(affected.ofPod)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of what is asked on a node: its requests are names of nodes.
type Loop struct {
	loop.Loop[*corev1.Node, Survey]
}

// NewLoop returns the reconcile of nodes.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	return &Loop{loop.Loop[*corev1.Node, Survey]{
		New:   func() *corev1.Node { return &corev1.Node{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, node *corev1.Node) (Survey, error) {
			v, err := Observe(ctx, r, node)
			v.Options = c.Options
			return v, err
		},
		Plan: Plan,
		// Nothing is written on nodes.
		Report:   func(v Survey, _ plan.Plan, _ apply.Outcome) *corev1.Node { return v.Node },
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}}
}

// Reconcile looks after a node, or takes away what a node has left behind that is gone.
func (l *Loop) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	err := l.Cache.Get(ctx, request.NamespacedName, &corev1.Node{})
	if !apierrors.IsNotFound(err) {
		return l.Loop.Reconcile(ctx, request)
	}
	left := &v1alpha1.NodePodProbe{}
	if err := l.Cache.Get(ctx, request.NamespacedName, left); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	b := plan.For("Node " + request.Name + " is gone")
	b.Do(remove(left, "its node is gone"))
	outcome := l.Executor.Run(ctx, left, b.Plan())
	return reconcile.Result{}, outcome.Err()
}
