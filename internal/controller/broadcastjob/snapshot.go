package broadcastjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// BindPods names the node in the Pods themselves, instead of having the scheduler bind them to it (flag --assign-bcj-pods-by-scheduler=false).
	BindPods bool
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Job *v1beta1.BroadcastJob
	// Pods are those that the job controls.
	Pods []*corev1.Pod
	// Nodes are all nodes of the cluster; none once the job has finished.
	Nodes []*corev1.Node
	// Taken are names that new Pods can't have, because objects that are not seen here have them.
	Taken   []string
	Now     time.Time
	Options Options
}
