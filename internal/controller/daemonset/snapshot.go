package daemonset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// BindPods names the node in the Pods themselves, instead of having the scheduler bind them to it (flag --assign-pods-by-scheduler=false).
	BindPods bool
	// PreDownload has images pulled before Pods are updated (gate PreDownloadImageForDaemonSetUpdate).
	PreDownload bool
	// InPlace says which changes can go in place.
	InPlace inplace.Options
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.DaemonSet
	// Pods are those that the DaemonSet controls.
	Pods []*corev1.Pod
	// Orphans are those that its selector matches and nobody controls. No more of them may be known than their metadata.
	Orphans []*corev1.Pod
	// Predecessor means that a DaemonSet of Kubernetes of the same name is being deleted, whose Pods may become orphans any moment.
	Predecessor bool
	// Nodes are all nodes of the cluster.
	Nodes []*corev1.Node
	// Revisions are those that the DaemonSet controls, and those that its selector matches and nobody controls.
	Revisions []*appsv1.ControllerRevision
	// Failures are the nodes whose Pod has ended lately.
	Failures map[string]Failure
	// PullJobs are the ImagePullJobs that the DaemonSet controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new Pods can't have, because objects that are not seen here have them.
	Taken   []string
	Now     time.Time
	Options Options
}
