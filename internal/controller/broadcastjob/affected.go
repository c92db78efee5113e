package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
)

// Jobs finds the BroadcastJobs that a node concerns.
type Jobs struct {
	// Reader is a cache.
	client.Reader
}

// OfNode returns the jobs, not yet over, for which the coming, going or changing of a node makes a difference. Most changes of nodes are heartbeats,
// which make none and cost no more than a comparison.
func (j Jobs) OfNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !nodefit.Changed(before, after) {
		return nil, nil
	}
	var all v1beta1.BroadcastJobList
	if err := j.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	for i := range all.Items {
		job := &all.Items[i]
		if !isFinished(job) && makesADifference(job, before, after) {
			out = append(out, client.ObjectKeyFromObject(job))
		}
	}
	return out, nil
}

func makesADifference(job *v1beta1.BroadcastJob, before, after *corev1.Node) bool {
	if after == nil {
		return true // whatever is counted there
	}
	fit := nodefit.OfJob(&job.Spec.Template.Spec)
	if before == nil {
		return fit.On(after).Run
	}
	return fit.On(before) != fit.On(after)
}
