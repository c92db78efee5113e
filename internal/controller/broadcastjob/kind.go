package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
)

// kind is that of the owner in references.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("BroadcastJob") }

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// BindPods names the node in the Pods themselves, instead of having the scheduler bind them to it (flag
	// --assign-bcj-pods-by-scheduler=false).
	BindPods bool
}

// Kind is the controller of BroadcastJobs.
func Kind(o Options) loop.Kind[*v1beta1.BroadcastJob, State, v1beta1.BroadcastJobStatus] {
	return loop.Kind[*v1beta1.BroadcastJob, State, v1beta1.BroadcastJobStatus]{
		Name: "broadcastjob",
		Owns: []client.Object{&corev1.Pod{}},
		Watches: func(cached observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Affected(&corev1.Node{}, jobs{cached}.ofNode)}
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.BroadcastJob) *v1beta1.BroadcastJobStatus { return &o.Status },
		Exact:    true, // a finished job must not run again
		// A node's second Pod would do the job again.
		CreatesLive: true,
	}
}

// jobs finds the BroadcastJobs that a change concerns.
type jobs struct{ observe.Reader }

// ofNode returns the unfinished jobs for which a new, deleted or changed node makes a difference. Heartbeats, which most changes are, cost
// a comparison.
func (j jobs) ofNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !nodefit.Changed(before, after) {
		return nil, nil
	}
	var list v1beta1.BroadcastJobList
	all, err := observe.List(ctx, j, &list, &list.Items)
	return observe.Keys(all, func(job *v1beta1.BroadcastJob) bool { return !isFinished(job) && concerns(job, before, after) }), err
}

func concerns(job *v1beta1.BroadcastJob, before, after *corev1.Node) bool {
	fit := nodefit.OfJob(&job.Spec.Template.Spec)
	switch {
	case after == nil:
		return true // the job may have a Pod there
	case before == nil:
		return fit.On(after).Run
	}
	return fit.On(before) != fit.On(after)
}
