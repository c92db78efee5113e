package broadcastjob

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Job *v1beta1.BroadcastJob
	// Pods are those that the job controls.
	Pods []*corev1.Pod
	// Nodes are all nodes of the cluster; none once the job has finished.
	Nodes []*corev1.Node
	// Taken are names that new Pods don't get: objects that are not seen here have them, or Pods before had them.
	Taken   []string
	Now     time.Time
	Options Options
}

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, job *v1beta1.BroadcastJob) (_ State, err error) {
	s := Snapshot{Job: job, Taken: slices.Concat(r.Taken, r.Former), Now: r.Now, Options: o}
	if job.DeletionTimestamp == nil {
		if s.Pods, err = r.Pods(ctx, job.Namespace, job.UID); err != nil {
			return State{}, err
		}
		if !isFinished(job) {
			s.Nodes, err = r.Nodes(ctx)
		}
	}
	return Classify(s), err
}
