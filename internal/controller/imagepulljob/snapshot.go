package imagepulljob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// ConfigNamespace is where the daemons of nodes may read Secrets.
	ConfigNamespace string
	// SystemNamespace is where the Pods of the daemons are, if they run as Pods.
	SystemNamespace string
	// Extra is how much longer than a job needs it a tag is kept in NodeImages.
	Extra time.Duration
}

// Source is a Secret that the job names.
type Source struct {
	Name string
	// Secret is nil where it can't be read.
	Secret *corev1.Secret
	// Missing means that there is none of that name, Problem why else it can't be read.
	Missing bool
	Problem string
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Job *v1beta1.ImagePullJob
	// NodeImages and Nodes are all of the cluster.
	NodeImages []*v1beta1.NodeImage
	Nodes      []*corev1.Node
	// Daemons are the Pods of the daemons; none where these run in another way.
	Daemons []*corev1.Pod
	// Pods are those of the job's podSelector.
	Pods []*corev1.Pod
	// Workload is the workload that controls the job, if it is one of ours: its Pods are updated in a certain order.
	Workload Workload
	// Sources are the Secrets that the job names, Copies those in the namespace that daemons read.
	Sources []Source
	Copies  []*corev1.Secret
	Now     time.Time
	Options Options
}

// Workload is what controls a job; all fields nil for a job of a user's.
type Workload struct {
	CloneSet    *v1beta1.CloneSet
	StatefulSet *v1beta1.StatefulSet
	DaemonSet   *v1beta1.DaemonSet
}
