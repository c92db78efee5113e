package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestBesideKnowsPodsByUID checks that a Pod with the name of an earlier one answers a loss, and can be the next that is deleted.
func TestBesideKnowsPodsByUID(t *testing.T) {
	x := &beside{pods: map[types.UID]*corev1.Pod{}, lost: map[types.UID]bool{}}
	first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	x.see(first, false)
	leaving := first.DeepCopy()
	leaving.DeletionTimestamp = new(metav1.Now())
	x.see(leaving, false)
	x.see(leaving, true)
	if p := x.any(); p != nil {
		t.Errorf("%s is to be deleted while a loss is not answered", p.UID)
	}
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "2"}}
	x.see(second, false)
	if len(x.took) != 1 || len(x.unanswered) != 0 {
		t.Errorf("%d answers, %d losses without one, want 1 and 0", len(x.took), len(x.unanswered))
	}
	if p := x.any(); p == nil || p.UID != "2" {
		t.Errorf("%v can be deleted, want the Pod with UID 2", p)
	}
}
