package workloadspread

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAdaptive is scenario 8: Pods that can't be scheduled in a subset come back in the next one; it takes Pods again after five minutes, and they return to it
// once it has a node. The five minutes are made to be over by the time at which the condition changed.
func TestAdaptive(t *testing.T) {
	e := newEnv(t)
	o := e.Manifest(spreadOf(clone, "CloneSet", "web", "nowhere=2", "b"))
	e.Must(unstructured.SetNestedMap(o.Object, map[string]any{"type": "Adaptive", "adaptive": map[string]any{"rescheduleCriticalSeconds": int64(3), "returnPods": true}},
		"spec", "scheduleStrategy"))
	e.Must(e.Client.Create(e.Ctx, o))
	e.workload(clone, "CloneSet", "web", 3)
	e.Eventually("Pods wait in a subset without nodes", func() error {
		if n := e.subsets()["nowhere"]; n == 0 {
			return errors.New("none does")
		}
		return nil
	})
	e.spreads("web", map[string]int{"b": 3})
	closed := func() *metav1.Condition { return &e.read("web").Status.SubsetStatuses[0].Conditions[0] }
	if c := closed(); c.Type != "Schedulable" || c.Status != metav1.ConditionFalse || c.Reason != "PodUnschedulable" {
		t.Errorf("the condition is %+v", c)
	}
	if c := e.read("web").Status.SubsetStatuses[1].Conditions[0]; c.Status != metav1.ConditionTrue || c.Reason != "Sufficient" {
		t.Errorf("the condition of the last subset is %+v", c)
	}
	s := e.read("web")
	before := s.DeepCopy()
	s.Status.SubsetStatuses[0].Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-5 * time.Minute))
	e.Must(e.Client.Status().Patch(e.Ctx, s, client.MergeFrom(before)))
	e.Eventually("the subset takes Pods again", func() error {
		if c := closed(); c.Status != metav1.ConditionTrue || c.Reason != "Sufficient" {
			return fmt.Errorf("the condition is %+v", c)
		}
		if !slices.Contains(e.Reasons("web"), "RecoverSchedulable") {
			return errors.New("there is no event")
		}
		return nil
	})
	e.EditNode(spare, func(n *corev1.Node) { n.Labels["zone"], n.Spec.Unschedulable = "nowhere", false })
	e.Eventually("the Pods come back", func() error {
		if got := e.subsets(); got["nowhere"] != 2 || got["b"] != 1 {
			if c := closed(); c.Status == metav1.ConditionFalse { // the node came too late for one of them: the five minutes are made to be over again
				s := e.read("web")
				before := s.DeepCopy()
				s.Status.SubsetStatuses[0].Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-5 * time.Minute))
				e.Must(e.Client.Status().Patch(e.Ctx, s, client.MergeFrom(before)))
			}
			return fmt.Errorf("the subsets are %v", got)
		}
		return nil
	})
	e.Eventually("an event tells of it", func() error {
		if got := e.Reasons("web"); !slices.Contains(got, "PodReturned") {
			return fmt.Errorf("the events are %v", got)
		}
		return nil
	})
}
