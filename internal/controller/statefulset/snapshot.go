package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// PreparingUpdateAsUpdate counts a Pod that waits to be updated in place as updated when Pods are added (gate PreparingUpdateAsUpdate).
	PreparingUpdateAsUpdate bool
	// ClaimRetention heeds persistentVolumeClaimRetentionPolicy (gate StatefulSetAutoDeletePVC).
	ClaimRetention bool
	// ClaimResize heeds volumeClaimUpdateStrategy (gate StatefulSetAutoResizePVCGate).
	ClaimResize bool
	// StartOrdinal heeds ordinals.start (gate StatefulSetStartOrdinal).
	StartOrdinal bool
	// PreDownload has images pulled before Pods are updated (gate PreDownloadImageForInPlaceUpdate).
	PreDownload bool
	// InPlace says which changes can go in place.
	InPlace inplace.Options
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.StatefulSet
	// Pods are those that the StatefulSet controls.
	Pods []*corev1.Pod
	// Orphans are Pods that the selector matches, that have a name of this StatefulSet, and that nobody controls. Of each only what identifies it
	// is known. There are none where it is not sure that the StatefulSet is still the one that is meant.
	Orphans []*corev1.Pod
	// Claims are those that have the name of a claim of one of the Pods, whoever owns them.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are those that the StatefulSet controls, and those that its selector matches and nobody controls.
	Revisions []*appsv1.ControllerRevision
	// FixedClasses are the storage classes, of claims that are too small, whose claims can't grow, each with the reason.
	FixedClasses map[string]string
	// PullJobs are the ImagePullJobs that the StatefulSet controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new ImagePullJobs can't have, because objects of others have them.
	Taken   []string
	Now     time.Time
	Options Options
}
