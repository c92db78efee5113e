package broadcastjob

import (
	"context"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Observe makes every read of a pass.
func Observe(ctx context.Context, r observe.Reader, job *v1beta1.BroadcastJob) (Snapshot, error) {
	s := Snapshot{Job: job}
	if job.DeletionTimestamp != nil {
		return s, nil
	}
	var err error
	if s.Pods, err = r.Pods(ctx, job.Namespace, job.UID); err != nil {
		return Snapshot{}, err
	}
	if isFinished(job) {
		return s, nil
	}
	s.Nodes, err = r.Nodes(ctx)
	return s, err
}
