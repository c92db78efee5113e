package imagepulljob

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// EventSource is the component that the controller's events come from.
const EventSource = "imagepulljob-controller"

// Config is what the controller works with.
type Config struct {
	Options  Options
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Sources reads the Secrets that jobs name.
	Sources *observe.Sources
	// Workers is the number of jobs looked after at the same time.
	Workers int
	Now     func() time.Time
}

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	jobs := Jobs{Reader: mgr.GetCache(), SystemNamespace: c.Options.SystemNamespace}
	return loop.Controller{Name: "imagepulljob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.ImagePullJob{}, loop.OwnerEvents[*v1beta1.ImagePullJob](l.Forget)),
		source.Kind(mgr.GetCache(), &v1beta1.NodeImage{}, loop.AffectedEvents(jobs.OfNodeImage)),
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(jobs.OfNode)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(jobs.OfPod)),
		source.Kind(mgr.GetCache(), &corev1.Secret{}, loop.AffectedEvents(OfCopy)),
	}}.AddTo(mgr)
}

// NewLoop returns the reconcile of ImagePullJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.ImagePullJob, State] {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // a job that is over must not run again
	return &loop.Loop[*v1beta1.ImagePullJob, State]{
		New:   func() *v1beta1.ImagePullJob { return &v1beta1.ImagePullJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, job *v1beta1.ImagePullJob) (State, error) {
			s, err := c.Observe(ctx, r, job)
			if err != nil {
				return State{}, err
			}
			return Classify(s), nil
		},
		Plan: Plan,
		Report: func(v State, _ plan.Plan, _ apply.Outcome) *v1beta1.ImagePullJob {
			after := v.Job.DeepCopy()
			after.Status = Status(v)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}

// Jobs finds the jobs that something concerns that does not say so itself.
type Jobs struct {
	// Reader is a cache.
	client.Reader
	// SystemNamespace is where the Pods of the daemons are.
	SystemNamespace string
}

// OfNodeImage returns the jobs that asked for a tag of which a NodeImage says something new, and all running ones when a NodeImage comes, goes, or
// changes its labels.
func (j Jobs) OfNodeImage(ctx context.Context, before, after *v1beta1.NodeImage) ([]types.NamespacedName, error) {
	if before == nil || after == nil || !maps.Equal(before.Labels, after.Labels) {
		return j.running(ctx, "", func(*v1beta1.ImagePullJob) bool { return true })
	}
	if before.ResourceVersion == after.ResourceVersion {
		return nil, nil
	}
	concerned := map[types.NamespacedName]bool{}
	for _, pair := range [][2]*v1beta1.NodeImage{{before, after}, {after, before}} {
		for repository := range pair[0].Spec.Images {
			for i := range pair[0].Spec.Images[repository].Tags {
				tag := &pair[0].Spec.Images[repository].Tags[i]
				if !says(pair[0], pair[1], repository, tag) {
					note(tag, concerned)
				}
			}
		}
	}
	if len(before.Spec.Images) >= v1beta1.MaxNodeImages && len(after.Spec.Images) < v1beta1.MaxNodeImages {
		// Others may have waited for the room.
		return j.running(ctx, "", func(*v1beta1.ImagePullJob) bool { return true })
	}
	return slices.Collect(maps.Keys(concerned)), nil
}

// says reports whether b says the same of a tag as a.
func says(a, b *v1beta1.NodeImage, repository string, tag *v1beta1.ImageTagSpec) bool {
	others := b.Spec.Images[repository].Tags
	i := slices.IndexFunc(others, func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag.Tag })
	if i < 0 || others[i].Version != tag.Version || len(others[i].OwnerReferences) != len(tag.OwnerReferences) {
		return false
	}
	of, by := pull.StatusOf(a, repository, tag), pull.StatusOf(b, repository, &others[i])
	return of == nil && by == nil || of != nil && by != nil && of.Phase == by.Phase
}

func note(tag *v1beta1.ImageTagSpec, concerned map[types.NamespacedName]bool) {
	for _, owner := range tag.OwnerReferences {
		if owner.Kind == "ImagePullJob" {
			concerned[types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}] = true
		}
	}
}

// OfNode returns the running jobs when a node comes, goes, or becomes ready or not. Its labels they see in its NodeImage.
func (j Jobs) OfNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && isReady(before) == isReady(after) {
		return nil, nil
	}
	return j.running(ctx, "", func(*v1beta1.ImagePullJob) bool { return true })
}

// OfPod returns the running jobs that select a Pod which comes to a node, or leaves it, or changes its labels, and all running jobs when it is the
// Pod of a daemon that begins or ceases to serve.
func (j Jobs) OfPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	is, was := after, before
	if is == nil {
		is = before
	}
	if was == nil {
		was = after
	}
	if is.Namespace == j.SystemNamespace && is.Labels[keys.ControlPlane] == keys.ControlPlaneDaemon {
		if before != nil && after != nil && serves(before) == serves(after) {
			return nil, nil
		}
		return j.running(ctx, "", func(*v1beta1.ImagePullJob) bool { return true })
	}
	same := before != nil && after != nil && before.Spec.NodeName == after.Spec.NodeName && before.Status.Phase == after.Status.Phase &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && maps.Equal(before.Labels, after.Labels)
	if same || was.Spec.NodeName == "" && is.Spec.NodeName == "" {
		return nil, nil
	}
	return j.running(ctx, is.Namespace, func(job *v1beta1.ImagePullJob) bool {
		if job.Spec.PodSelector == nil {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(&job.Spec.PodSelector.LabelSelector)
		return err == nil && (selector.Matches(labels.Set(is.Labels)) || selector.Matches(labels.Set(was.Labels)))
	})
}

// OfCopy returns the jobs that a copied Secret is for, when it goes: they make it again if they still need it.
func OfCopy(_ context.Context, before, after *corev1.Secret) ([]types.NamespacedName, error) {
	switch {
	case after == nil:
		return pull.ReferencesOf(before), nil
	case after.DeletionTimestamp != nil:
		return pull.ReferencesOf(after), nil
	default:
		return nil, nil
	}
}

func (j Jobs) running(ctx context.Context, namespace string, concerned func(*v1beta1.ImagePullJob) bool) ([]types.NamespacedName, error) {
	var all v1beta1.ImagePullJobList
	if err := j.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	for i := range all.Items {
		if job := &all.Items[i]; job.Status.CompletionTime == nil && concerned(job) {
			out = append(out, client.ObjectKeyFromObject(job))
		}
	}
	return out, nil
}
