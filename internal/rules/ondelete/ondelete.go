// Package ondelete decides which Pods of a native DaemonSet are deleted while a release updates it in batches. Its update strategy is
// OnDelete meanwhile: the native controller makes a new Pod, of the new template, wherever one is gone, and deletes none.
package ondelete

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Batch is what a batch of a DaemonSet wants and allows.
type Batch struct {
	// Desired is how many nodes are to have a Pod.
	Desired int32
	// Keep is how many Pods stay old.
	Keep int32
	// MaxUnavailable is how many Pods of the release may be out of service at a time.
	MaxUnavailable int32
}

// MaxUnavailable returns how many of desired Pods may be out of service: a number, or a percentage rounded down, and at least 1. Nil is 1.
func MaxUnavailable(value *intstr.IntOrString, desired int32) (int32, error) {
	if value == nil {
		return 1, nil
	}
	n, err := budget.Scaled(value, int(desired), budget.Down)
	if err != nil {
		return 1, fmt.Errorf("maxUnavailable: %w", err)
	}
	return max(int32(n), 1), nil
}

// Next returns the old Pods to delete now, and what further ones wait for; empty if none has to be deleted after these.
//
// A Pod that is on its way out counts neither as old nor as updated, only as out of service. Old Pods that do not serve, because they are
// not ready or not for long enough, go at once, which costs no service. Of the others as many go as maxUnavailable leaves: with 10 nodes, 1
// updated Pod that does not serve, 1 on its way out and maxUnavailable 3, one goes.
func Next(b Batch, pods []*corev1.Pod, isUpdated, serves func(*corev1.Pod) bool) (gone []*corev1.Pod, wait string) {
	var old []*corev1.Pod
	ready, oldNotReady := int32(0), int32(0)
	for _, p := range pods {
		if !pod.IsActive(p) {
			continue
		}
		if !isUpdated(p) {
			old = append(old, p)
			if !serves(p) {
				oldNotReady++
			}
		}
		if serves(p) {
			ready++
		}
	}
	missing := max(int32(len(old))-b.Keep, 0)
	slices.SortFunc(old, order(serves))
	room := b.MaxUnavailable - max(b.Desired-ready-oldNotReady, 0)
	for _, p := range old {
		switch {
		case missing == 0:
			return gone, ""
		case serves(p) && room <= 0:
			return gone, fmt.Sprintf("%d more Pods are to be updated, and %d are out of service, of which there may be %d",
				missing, max(b.Desired-ready-oldNotReady, 0), b.MaxUnavailable)
		case serves(p):
			room--
		}
		gone = append(gone, p)
		missing--
	}
	return gone, ""
}

// order puts Pods first that are missed least: those that do not run yet, then those that do not serve, those of lower deletion cost, and
// the newer ones.
func order(serves func(*corev1.Pod) bool) func(a, b *corev1.Pod) int {
	return func(a, b *corev1.Pod) int {
		return cmp.Or(
			rank(a, serves)-rank(b, serves), cmp.Compare(cost(a), cost(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name),
		)
	}
}

func rank(p *corev1.Pod, serves func(*corev1.Pod) bool) int {
	switch {
	case serves(p):
		return 2
	case p.Status.Phase == corev1.PodPending:
		return 0
	}
	return 1
}

func cost(p *corev1.Pod) int64 {
	n, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return n
}
