package ephemeraljob

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Job *v1alpha1.EphemeralJob
	// Pods are those of the namespace that the selector matches, and those that have containers of the job; none once the job is over.
	Pods []*corev1.Pod
	// Refused are Pods that the API server did not let have the containers, and until when they are left alone for that.
	Refused map[types.UID]time.Time
	Now     time.Time
}
