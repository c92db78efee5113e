package cloneset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// kind is that of the owner in references and events.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("CloneSet") }

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

// Kind is the controller of CloneSets.
func Kind(o Options) loop.Kind[*v1beta1.CloneSet, State, v1beta1.CloneSetStatus] {
	return loop.Kind[*v1beta1.CloneSet, State, v1beta1.CloneSetStatus]{
		Name:          "cloneset",
		Owns:          []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}},
		Read:          o.read,
		Plan:          Plan,
		WhileCreating: WhileCreating,
		Status:        Status,
		StatusOf:      func(o *v1beta1.CloneSet) *v1beta1.CloneSetStatus { return &o.Status },
		Final:         saysComplete,
		MinInterval:   minInterval,
		Release:       func(v State, _ *v1beta1.CloneSet) plan.Release { return rollout.ReleaseOf(v.workload.History) },
	}
}

// fewPods is the number of Pods up to which passes follow one another as events come: each takes a millisecond or two.
const fewPods = 1000

// minInterval returns how long passes pause after this one, so that the passes over a large CloneSet whose Pods become ready one after the
// other take a small share of a processor.
func minInterval(v State) time.Duration { return loop.IntervalOf(max(0, len(v.Pods)-fewPods)) }
