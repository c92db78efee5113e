package broadcastjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// BindPods names the node in the Pods themselves, instead of having the scheduler bind them to it (flag --assign-bcj-pods-by-scheduler=false).
	BindPods bool
}

// Snapshot is all that one pass reads.
type Snapshot struct {
	Job *v1beta1.BroadcastJob
	// Pods are those that the job controls.
	Pods []*corev1.Pod
	// Nodes are all nodes of the cluster; none once the job has finished.
	Nodes []*corev1.Node
	// Taken are names of objects that are not seen here: new Pods can't have them.
	Taken   []string
	Now     time.Time
	Options Options
}

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
