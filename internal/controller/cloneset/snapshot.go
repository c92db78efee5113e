package cloneset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// ShortHash labels Pods with the hash of their revision alone, instead of its full name (gate CloneSetShortHash).
	ShortHash bool
	// PartitionRollback lets a raised partition take updated Pods back to the current revision (gate CloneSetPartitionRollback).
	PartitionRollback bool
	// PreparingUpdateAsUpdate counts a Pod that waits to be updated in place as updated when Pods are added (gate PreparingUpdateAsUpdate).
	PreparingUpdateAsUpdate bool
	// RecreateOnClaimChange recreates Pods whose claim templates have changed (gate RecreatePodWhenChangeVCTInCloneSetGate).
	RecreateOnClaimChange bool
	// ExcludePreparingDelete leaves Pods held by a preDelete hook out of the number of replicas, for all CloneSets.
	ExcludePreparingDelete bool
	// PreDownload has images pulled before Pods are updated (gate PreDownloadImageForInPlaceUpdate).
	PreDownload bool
	// InPlace says which changes can go in place.
	InPlace inplace.Options
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.CloneSet
	// Pods are those that the CloneSet controls.
	Pods []*corev1.Pod
	// Claims are those that the CloneSet, or one of its Pods, controls.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are those that the CloneSet controls, and those that its selector matches and nobody controls.
	Revisions []*appsv1.ControllerRevision
	// NodeLabels holds the labels of the nodes that Pods are on; filled only where the template has topology spread constraints.
	NodeLabels map[string]map[string]string
	// PullJobs are the ImagePullJobs that the CloneSet controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new Pods and claims can't have, because objects that are not seen here have them.
	Taken   []string
	Now     time.Time
	Options Options
}
