package nodepodprobe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// asked returns a node with a Pod that a marker asks whether it is idle, all written and answered.
func asked() Snapshot {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "p"}}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{{
		Name: "a", ContainerName: "main", PodConditionType: "idle",
		MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"idle": "true"}}},
	}}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Labels: map[string]string{"app": "p", "idle": "true"}},
	}
	p.Spec.NodeName, p.Spec.Containers = "n", []corev1.Container{{Name: "main"}}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: "idle", Status: corev1.ConditionTrue, Message: "yes"},
	}
	v := Snapshot{
		Node:   &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		Probes: &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		Pods:   []*corev1.Pod{p}, Markers: []*v1alpha1.PodProbeMarker{m},
	}
	v.Probes.Spec.PodProbes, _ = probe.NewMarkers(v.Markers).PodProbes(v.Pods)
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	v.Probes.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{Name: "p", Namespace: "ns", UID: "p", ProbeStates: []v1alpha1.ContainerProbeState{
		{Name: "m#a", State: v1alpha1.ProbeSucceeded, Message: "yes", LastProbeTime: at, LastTransitionTime: at},
	}}}
	return v
}

func TestPlan(t *testing.T) {
	virtual := func(v *Snapshot) { v.Node.Labels = map[string]string{keys.NodeType: keys.NodeTypeVirtual} }
	instructed := func(v *Snapshot) {
		p := v.Pods[0].DeepCopy()
		if _, err := probe.NewMarkers(v.Markers).Annotate(p, func() *corev1.Pod { return p }); err != nil {
			t.Fatal(err)
		}
		v.Pods[0] = p
	}
	serverless := func(v *Snapshot) {
		virtual(v)
		instructed(v)
		v.Options.Virtual, v.Probes = true, nil
	}
	unmarked := func(v *Snapshot) { delete(v.Pods[0].Labels, "idle") }
	cases := map[string]struct {
		change []func(*Snapshot)
		want   []string
	}{
		"all is as it should be": {nil, nil},
		"a node without probes": {
			[]func(*Snapshot){func(v *Snapshot) { v.Probes = nil }}, []string{"create n"},
		},
		"the probes were changed by hand": {
			[]func(*Snapshot){func(v *Snapshot) { v.Probes.Spec.PodProbes = nil }}, []string{"update n"},
		},
		"the marker is gone": {
			[]func(*Snapshot){func(v *Snapshot) { v.Markers = nil }}, []string{"update n"},
		},
		"the Pod does not show the answer": {[]func(*Snapshot){unmarked}, []string{"update status p"}},
		"another Pod has answered": {
			[]func(*Snapshot){unmarked, func(v *Snapshot) { v.Probes.Status.PodProbeStatuses[0].UID = "q" }}, nil,
		},
		"the node goes": {
			[]func(*Snapshot){func(v *Snapshot) { v.Node.DeletionTimestamp = &metav1.Time{} }}, []string{"delete n"},
		},
		"a virtual node": {[]func(*Snapshot){virtual, unmarked}, []string{"delete n"}},
		"a virtual node whose provider has answered": {[]func(*Snapshot){serverless, unmarked}, []string{"update status p"}},
		"a virtual node whose provider knows not what to ask": {
			[]func(*Snapshot){serverless, func(v *Snapshot) { v.Pods[0].Annotations = nil }}, []string{"update status p"},
		},
		"a virtual node whose provider knows": {[]func(*Snapshot){serverless}, nil},
		"a virtual node whose provider is to ask no more": {
			[]func(*Snapshot){serverless, func(v *Snapshot) { v.Markers = nil }}, []string{"update status p"},
		},
		"a Pod on a virtual node that has ended": {
			[]func(*Snapshot){serverless, unmarked, func(v *Snapshot) { v.Pods[0].Status.Phase = corev1.PodSucceeded }}, nil,
		},
		"a Pod that was made for a virtual node": {[]func(*Snapshot){instructed}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := asked()
			for _, change := range tc.change {
				change(&v)
			}
			before := v.Pods[0].DeepCopy()
			var got []string
			for _, a := range Plan(v).Actions() {
				got = append(got, string(a.Verb)+" "+a.Object().GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, v.Pods[0]); diff != "" {
				t.Errorf("the plan changed what it looked at:\n%s", diff)
			}
		})
	}
}
