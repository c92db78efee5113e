package statefulset

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

// kind is that of the owner in references and events.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("StatefulSet") }

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

// Kind is the controller of StatefulSets.
func Kind(o Options) loop.Kind[*v1beta1.StatefulSet, State, v1beta1.StatefulSetStatus] {
	return loop.Kind[*v1beta1.StatefulSet, State, v1beta1.StatefulSetStatus]{
		Name: "statefulset",
		Owns: []client.Object{&corev1.Pod{}},
		Watches: func(observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Named(&corev1.Pod{}, setsOfPod), loop.Named(&corev1.PersistentVolumeClaim{}, setsOfClaim)}
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.StatefulSet) *v1beta1.StatefulSetStatus { return &o.Status },
		Final:    saysComplete,
		Release:  func(v State, _ *v1beta1.StatefulSet) plan.Release { return rollout.ReleaseOf(v.workload.History) },
	}
}

// setsOfPod names the StatefulSet that a Pod without a controller could belong to.
func setsOfPod(p *corev1.Pod) []string {
	if metav1.GetControllerOfNoCopy(p) != nil {
		return nil
	}
	if set, _, ok := ordinal.Split(p.Name); ok {
		return []string{set}
	}
	return nil
}

// setsOfClaim names every StatefulSet that a claim could belong to: data-web-db-3 is a claim of web-db, or of a StatefulSet db whose
// template is data-web.
func setsOfClaim(c *corev1.PersistentVolumeClaim) []string {
	rest, _, ok := ordinal.Split(c.Name)
	if !ok {
		return nil
	}
	var sets []string
	for {
		_, after, found := strings.Cut(rest, "-")
		if !found {
			return sets
		}
		sets = append(sets, after)
		rest = after
	}
}
