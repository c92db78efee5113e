package ephemeraljob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("EphemeralJob") }

// EventSource is the component that the controller's events come from.
const EventSource = "ephemeraljob-controller"

// Options are the choices made for the whole controller at start-up: there are none.
type Options struct{}

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	if err := AddIndex(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "ephemeraljob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1alpha1.EphemeralJob{}, loop.OwnerEvents[*v1alpha1.EphemeralJob](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(Jobs{Reader: mgr.GetCache()}.OfPod)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of EphemeralJobs.
type Loop = loop.Loop[*v1alpha1.EphemeralJob, State]

// NewLoop returns the reconcile of EphemeralJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // a job that is over must not run again
	refused := &apply.Refused{Verb: plan.AddContainers, Concern: plan.Scale}
	return &Loop{
		New:   func() *v1alpha1.EphemeralJob { return &v1alpha1.EphemeralJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, job *v1alpha1.EphemeralJob) (State, error) {
			s, err := Observe(ctx, r, job)
			if err != nil {
				return State{}, err
			}
			s.Now = c.Now()
			s.Refused = refused.Present(s.Now)
			return Classify(s), nil
		},
		Plan: Plan,
		Report: func(v State, p plan.Plan, done apply.Outcome) *v1alpha1.EphemeralJob {
			after := v.Job.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Remember: func(v State, done apply.Outcome) { refused.Note(done, v.Now) },
		Executor: c.Executor,
		Statuses: statuses,
	}
}

// Jobs finds the EphemeralJobs that a Pod concerns.
type Jobs struct {
	// Reader is a cache.
	client.Reader
}

// OfPod returns the jobs, not yet over, for which the coming, going or changing of a Pod makes a difference. Most changes of Pods make none and cost no
// more than a comparison.
func (j Jobs) OfPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !changed(before, after) {
		return nil, nil
	}
	var versions []*corev1.Pod
	for _, p := range []*corev1.Pod{before, after} {
		if p != nil {
			versions = append(versions, p)
		}
	}
	var all v1alpha1.EphemeralJobList
	if err := j.List(ctx, &all, client.InNamespace(versions[0].Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing EphemeralJobs: %w", err)
	}
	var out []types.NamespacedName
	for i := range all.Items {
		if job := &all.Items[i]; !isOver(job) && concerns(job, versions) {
			out = append(out, client.ObjectKeyFromObject(job))
		}
	}
	return out, nil
}

func concerns(job *v1alpha1.EphemeralJob, versions []*corev1.Pod) bool {
	selector, err := selectorOf(job)
	for _, p := range versions {
		if ephemeral.Has(p, job.UID) || err == nil && selector.Matches(labels.Set(p.Labels)) {
			return true
		}
	}
	return false
}

// changed reports whether anything about the Pod has changed that a job looks at.
func changed(before, after *corev1.Pod) bool {
	return pod.IsActive(before) != pod.IsActive(after) || pod.IsFinished(before) != pod.IsFinished(after) || pod.IsScheduled(before) != pod.IsScheduled(after) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		len(before.Spec.EphemeralContainers) != len(after.Spec.EphemeralContainers) ||
		!equality.Semantic.DeepEqual(before.Status.EphemeralContainerStatuses, after.Status.EphemeralContainerStatuses)
}
