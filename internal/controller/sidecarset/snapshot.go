package sidecarset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Namespace is where the revisions of SidecarSets are kept.
	Namespace string
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.SidecarSet
	// Pods are those that the SidecarSet put sidecars into, in all namespaces, whether or not it still selects them.
	Pods []*corev1.Pod
	// Namespaces are the labels of the namespaces of those Pods; filled only where the SidecarSet selects namespaces.
	Namespaces map[string]map[string]string
	// Revisions are those of the SidecarSet.
	Revisions []*appsv1.ControllerRevision
	// Sets are the names of all SidecarSets; filled only where a Pod tells of some whether they can update it.
	Sets map[string]bool
	// Refused are Pods whose update was refused, and until when they are left alone for that.
	Refused map[types.UID]time.Time
	Now     time.Time
	Options Options
}
