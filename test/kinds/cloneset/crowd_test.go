package cloneset

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestScaleInTakesFromTheCrowdedNode has three of six Pods on one node, two on another and one on a third, and halves them.
func TestScaleInTakesFromTheCrowdedNode(t *testing.T) {
	for name, tc := range map[string]struct {
		cost string
		left map[string]int
	}{
		"each node keeps one":              {"", map[string]int{"sim-1": 1, "sim-2": 1, "sim-3": 1}},
		"unless its Pods are dear to lose": {"100", map[string]int{"sim-3": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			set := e.plain("crowd", 6)
			set.Spec.Template.Spec.SchedulerName = "by-the-test"
			e.Must(e.Client.Create(e.Ctx, set))
			e.bind("crowd", "sim-1", "sim-2", "sim-2", "sim-3", "sim-3", "sim-3")
			e.settled("crowd", 6, 6)
			for _, p := range e.pods("crowd") {
				if p.Spec.NodeName == "sim-3" && tc.cost != "" {
					e.patchPod(p.Name, func(p *corev1.Pod) { p.Annotations[corev1.PodDeletionCost] = tc.cost })
				}
			}
			e.edit("crowd", replicas(3))
			e.settled("crowd", 3, 3)
			got := map[string]int{}
			for _, p := range e.pods("crowd") {
				got[p.Spec.NodeName]++
			}
			if diff := difference(tc.left, got); diff != "" {
				t.Errorf("Pods by node (-want +got):\n%s", diff)
			}
		})
	}
}

// bind waits for the Pods and is their scheduler.
func (e *env) bind(name string, nodes ...string) {
	e.Helper()
	e.Eventually(fmt.Sprintf("there are %d Pods to schedule", len(nodes)), func() error {
		if n := len(e.pods(name)); n != len(nodes) {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for i, p := range e.pods(name) {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodes[i]}}
		e.Must(e.Client.SubResource("binding").Create(e.Ctx, &p, binding))
	}
}

// TestANewCloneSetLeavesOrphansAlone deletes a CloneSet such that its Pods stay, and creates it anew: it has as many Pods of its own as it wants, none
// of them is made for the one that is gone, and the orphans are nobody's business.
func TestANewCloneSetLeavesOrphansAlone(t *testing.T) {
	e := newEnv(t)
	set := e.plain("heir", 3)
	e.Must(e.Client.Create(e.Ctx, set.DeepCopy()))
	before := e.settled("heir", 3, 3)
	orphans := e.pods("heir")
	h := e.record("heir")
	e.Must(e.Client.Delete(e.Ctx, before, client.PropagationPolicy("Orphan")))
	e.Eventually("it can be created anew", func() error { return e.Client.Create(e.Ctx, set.DeepCopy()) })
	after := e.settled("heir", 3, 3)
	if after.UID == before.UID {
		t.Fatal("the CloneSet is the old one")
	}
	h.read(func(h *history) {
		for name, versions := range h.versions {
			isOrphan := slices.Contains(names(orphans), name)
			for _, p := range versions {
				owners := p.OwnerReferences
				if !isOrphan && (len(owners) != 1 || owners[0].UID != after.UID) {
					t.Errorf("Pod %s was made for %v", name, owners)
				}
			}
		}
		if h.mostPods > 6 {
			t.Errorf("there were %d Pods, want 3 of before and 3 of the new CloneSet", h.mostPods)
		}
	})
	var list corev1.PodList
	e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	left := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return len(p.OwnerReferences) > 0 })
	if got := uids(left); !slices.Equal(got, uids(orphans)) {
		t.Errorf("the orphans are %v, were %v", got, uids(orphans))
	}
}
