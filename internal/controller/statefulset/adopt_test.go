package statefulset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// TestPodsThatAreAdoptedGetTheRevisionOfTheirTemplate: a Pod whose revision another workload still controls is not taken for an older one.
func TestPodsThatAreAdoptedGetTheRevisionOfTheirTemplate(t *testing.T) {
	s := situation{func(*v1beta1.StatefulSet) {}, []string{"0 new", "1 new", "2 old"}}.snapshot(t)
	s.Orphans, s.Pods, s.Set.Status.CurrentRevision = s.Pods, nil, ""
	for _, p := range s.Orphans {
		p.OwnerReferences = nil
	}
	for i, rev := range s.Revisions {
		rev.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "another", Controller: ptr.To(true)}}
		rev.Name = []string{"web-theirs0", "web-theirs1"}[i]
	}
	for i, p := range s.Orphans {
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = []string{"web-theirs1", "web-theirs1", "web-theirs0"}[i]
	}
	v := Classify(s)
	got := map[string]string{}
	for _, a := range Plan(v).Actions() {
		if a.Verb == plan.Update {
			got[a.After.GetName()] = a.After.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
		}
	}
	ours := v.workload.History.Update.Name
	if ours == "web-theirs1" || got["web-0"] != ours || got["web-1"] != ours || got["web-2"] != "web-theirs0" {
		t.Errorf("Pods are at %v, and the revision is %s", got, ours)
	}
}
