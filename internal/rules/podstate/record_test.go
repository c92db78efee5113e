package podstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

const (
	host = "kubernetes.io/hostname"
	zone = "topology.kubernetes.io/zone"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// state requires the zone and prefers the host, and records the annotation ip.
func state() *v1beta1.PersistentPodState {
	s := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pps"}}
	s.Spec.TargetRef = v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{zone}}
	s.Spec.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{{Weight: 50, Preference: v1beta1.NodeTopologyTerm{Keys: []string{host}}}}
	s.Spec.PersistentPodAnnotations = []v1beta1.PersistentPodAnnotation{{Key: "ip"}}
	return s
}

// ready is a Pod that is ready on a node.
func ready(name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// unscheduled is a Pod that was bound to its place and found none so many seconds ago.
func unscheduled(name string, seconds int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{keys.InjectedPodState: "pps"}}}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes",
		LastTransitionTime: metav1.NewTime(noon().Add(-time.Duration(seconds) * time.Second)),
	}}
	return p
}

func nodes() map[string]map[string]string {
	return map[string]map[string]string{
		"n1": {host: "n1", zone: "a", "other": "x"}, "n2": {host: "n2", zone: "b"}, "bare": {host: "bare"},
	}
}

func on(node string) v1beta1.PodState {
	return v1beta1.PodState{NodeName: node, NodeTopologyLabels: some(nodes()[node], []string{host, zone})}
}

func released(record v1beta1.PodState, seconds int) v1beta1.PodState {
	record.ReleasedTime = &metav1.Time{Time: noon().Add(-time.Duration(seconds) * time.Second)}
	return record
}

func reserved(t testing.TB, entries ...string) ordinal.Reserved {
	t.Helper()
	var all []intstr.IntOrString
	for _, e := range entries {
		all = append(all, intstr.FromString(e))
	}
	out, err := ordinal.Parse(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type records = map[string]v1beta1.PodState

func TestRecords(t *testing.T) {
	three := func(s *Seen) { s.Places.Replicas = 3 }
	whenDeleted := func(s *Seen) {
		s.State.Spec.PersistentPodStateRetentionPolicy = v1beta1.PersistentPodStateRetentionWhenDeleted
	}
	ageing := func(s *Seen) { s.State.Spec.MaxAgeSeconds = new(int32(60)) }
	fallback := func(s *Seen) { s.State.Spec.Fallback = &v1beta1.PersistentPodStateFallback{AfterSeconds: 60} }
	withIP := ready("web-0", "n1")
	withIP.Annotations = map[string]string{"ip": "10.0.0.7", "else": "x"}
	withIPs := func(s *Seen) { s.State.Spec.RecordPodIPs = true }
	withLabels := func(s *Seen) {
		s.State.Spec.PersistentPodLabels = []v1beta1.PersistentPodLabel{{Key: "shard"}, {Key: "none"}}
	}
	labelled := ready("web-0", "n1")
	labelled.Labels = map[string]string{"shard": "7", "else": "x"}
	withNodes := func(s *Seen) { s.State.Spec.PreviousNodes = 2 }
	after := func(node string, before ...string) v1beta1.PodState {
		record := on(node)
		record.PreviousNodes = before
		return record
	}
	addressed := ready("web-0", "n1")
	addressed.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}}
	notReady := ready("web-0", "n2")
	notReady.Status.Conditions[0].Status = corev1.ConditionFalse
	custom := func(s *Seen) { s.Places = Places{Known: true, Workload: "game", Replicas: 2} }
	cases := map[string]struct {
		before records
		pods   []*corev1.Pod
		with   []func(*Seen)
		want   records
	}{
		"a ready Pod is recorded":                         {nil, []*corev1.Pod{ready("web-0", "n1")}, nil, records{"web-0": on("n1")}},
		"with the annotations that are named":             {nil, []*corev1.Pod{withIP}, nil, records{"web-0": {NodeName: "n1", NodeTopologyLabels: on("n1").NodeTopologyLabels, Annotations: map[string]string{"ip": "10.0.0.7"}}}},
		"with the labels that are named":                  {nil, []*corev1.Pod{labelled}, []func(*Seen){withLabels}, records{"web-0": {NodeName: "n1", NodeTopologyLabels: on("n1").NodeTopologyLabels, Labels: map[string]string{"shard": "7"}}}},
		"with the nodes of before, each once":             {records{"web-0": after("n1", "n3", "n2")}, []*corev1.Pod{ready("web-0", "n2")}, []func(*Seen){withNodes}, records{"web-0": after("n2", "n1", "n3")}},
		"no more nodes of before than are wanted":         {records{"web-0": after("n1", "n3", "n4")}, []*corev1.Pod{ready("web-0", "n2")}, []func(*Seen){withNodes}, records{"web-0": after("n2", "n1", "n3")}},
		"on the same node it has the same ones":           {records{"web-0": after("n1", "n3", "n2")}, []*corev1.Pod{ready("web-0", "n1")}, []func(*Seen){withNodes}, records{"web-0": after("n1", "n3", "n2")}},
		"nodes of before are not wanted any more":         {records{"web-0": after("n1", "n3", "n2")}, []*corev1.Pod{ready("web-0", "n1")}, nil, records{"web-0": on("n1")}},
		"with its addresses":                              {nil, []*corev1.Pod{addressed}, []func(*Seen){withIPs}, records{"web-0": {NodeName: "n1", NodeTopologyLabels: on("n1").NodeTopologyLabels, PodIPs: []string{"10.0.0.7", "fd00::7"}}}},
		"its addresses are not asked for any more":        {records{"web-0": {NodeName: "n1", NodeTopologyLabels: on("n1").NodeTopologyLabels, PodIPs: []string{"10.0.0.7"}}}, []*corev1.Pod{addressed}, nil, records{"web-0": on("n1")}},
		"a Pod that is not ready keeps what was recorded": {records{"web-0": on("n1")}, []*corev1.Pod{notReady}, nil, records{"web-0": on("n1")}},
		"a Pod that moved is recorded anew":               {records{"web-0": on("n1")}, []*corev1.Pod{ready("web-0", "n2")}, nil, records{"web-0": on("n2")}},
		"a node without one of the labels": {
			nil, []*corev1.Pod{ready("web-0", "bare")}, nil, records{"web-0": {NodeName: "bare", NodeTopologyLabels: map[string]string{host: "bare"}}},
		},
		"a node that is not known":                     {nil, []*corev1.Pod{ready("web-0", "n9")}, nil, nil},
		"a node that was relabelled since":             {records{"web-0": {NodeName: "n1", NodeTopologyLabels: map[string]string{host: "n1", zone: "old"}}}, []*corev1.Pod{ready("web-0", "n1")}, nil, records{"web-0": {NodeName: "n1", NodeTopologyLabels: map[string]string{host: "n1", zone: "old"}}}},
		"another key is asked for since":               {records{"web-0": {NodeName: "n1", NodeTopologyLabels: map[string]string{host: "n1"}}}, []*corev1.Pod{ready("web-0", "n1")}, nil, records{"web-0": on("n1")}},
		"a Pod that is gone keeps its record":          {records{"web-1": on("n1")}, nil, []func(*Seen){three}, records{"web-1": on("n1")}},
		"a Pod that there is no place for":             {records{"web-3": on("n1")}, nil, []func(*Seen){three}, nil},
		"a Pod beyond the places that still runs":      {records{"web-3": on("n1")}, []*corev1.Pod{ready("web-3", "n1")}, []func(*Seen){three}, records{"web-3": on("n1")}},
		"a Pod beyond the places, to be kept":          {records{"web-3": on("n1")}, nil, []func(*Seen){three, whenDeleted}, records{"web-3": on("n1")}},
		"a reserved ordinal":                           {records{"web-0": on("n1"), "web-1": on("n1"), "web-2": on("n2")}, nil, []func(*Seen){func(s *Seen) { s.Places.Replicas, s.Places.Reserved = 2, reserved(t, "1") }}, records{"web-0": on("n1"), "web-2": on("n2")}},
		"a reserved range":                             {records{"web-4": on("n1"), "web-3": on("n1")}, nil, []func(*Seen){func(s *Seen) { s.Places.Replicas, s.Places.Reserved = 2, reserved(t, "1-3") }}, records{"web-4": on("n1")}},
		"numbered from 5 on":                           {records{"web-4": on("n1"), "web-5": on("n1"), "web-7": on("n2"), "web-8": on("n2")}, nil, []func(*Seen){three, func(s *Seen) { s.Places.Start = 5 }}, records{"web-5": on("n1"), "web-7": on("n2")}},
		"of how many Pods there are nobody tells":      {records{"web-9": on("n1"), "x": on("n2")}, nil, []func(*Seen){func(s *Seen) { s.Places = Places{Workload: "web"} }}, records{"web-9": on("n1"), "x": on("n2")}},
		"names without numbers, as many as are missed": {records{"a": on("n1"), "b": on("n1"), "c": on("n2")}, []*corev1.Pod{ready("c", "n2")}, []func(*Seen){custom}, records{"a": on("n1"), "c": on("n2")}},
		"instance ids, of which one looks like a number": {
			records{"web-24567": on("n1"), "web-b": on("n1"), "web-c": on("n2")}, []*corev1.Pod{ready("web-c", "n2")},
			[]func(*Seen){func(s *Seen) { s.Places = Places{Known: true, Instance: true, Workload: "web", Replicas: 2} }},
			records{"web-24567": on("n1"), "web-c": on("n2")},
		},
		"another kind with numbers":         {records{"game-1": on("n1"), "game-2": on("n1")}, nil, []func(*Seen){custom}, records{"game-1": on("n1")}},
		"the workload is gone":              {records{"web-0": on("n1")}, []*corev1.Pod{ready("web-0", "n1")}, []func(*Seen){func(s *Seen) { s.Gone = true }, whenDeleted}, nil},
		"released, the time begins":         {records{"web-0": on("n1")}, nil, []func(*Seen){ageing}, records{"web-0": released(on("n1"), 0)}},
		"released, not too old":             {records{"web-0": released(on("n1"), 59)}, nil, []func(*Seen){ageing}, records{"web-0": released(on("n1"), 59)}},
		"released, too old":                 {records{"web-0": released(on("n1"), 60)}, nil, []func(*Seen){ageing}, nil},
		"taken again":                       {records{"web-0": released(on("n1"), 59)}, []*corev1.Pod{ready("web-0", "n1")}, []func(*Seen){ageing}, records{"web-0": on("n1")}},
		"ages no more":                      {records{"web-0": released(on("n1"), 99)}, nil, nil, records{"web-0": on("n1")}},
		"not scheduled for a while":         {records{"web-0": on("n1")}, []*corev1.Pod{unscheduled("web-0", 59)}, []func(*Seen){fallback}, records{"web-0": on("n1")}},
		"not scheduled for too long":        {records{"web-0": on("n1")}, []*corev1.Pod{unscheduled("web-0", 60)}, []func(*Seen){fallback}, nil},
		"not scheduled, and bound for good": {records{"web-0": on("n1")}, []*corev1.Pod{unscheduled("web-0", 999)}, nil, records{"web-0": on("n1")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Seen{State: state(), Places: Places{Known: true, Ordinal: true, Workload: "web", Replicas: 1}, Pods: tc.pods, Nodes: nodes(), Now: noon()}
			s.State.Status.PodStates = tc.before
			for _, with := range tc.with {
				with(&s)
			}
			before := s.State.DeepCopy()
			got, beyond := s.Records()
			if diff := cmp.Diff(tc.want, got); diff != "" || beyond != nil {
				t.Errorf("beyond %v, records (-want +got):\n%s", beyond, diff)
			}
			if diff := cmp.Diff(before, s.State); diff != "" {
				t.Errorf("what was read is changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRecordsOfManyPodsFit: the object stays below what can be stored, and which Pods are left out does not depend on chance.
func TestRecordsOfManyPodsFit(t *testing.T) {
	s := Seen{State: state(), Places: Places{Known: true, Ordinal: true, Workload: "web", Replicas: 9000}, Nodes: nodes(), Now: noon()}
	for i := range 9000 {
		s.Pods = append(s.Pods, ready(fmt.Sprint("web-", i), "n1"))
	}
	first, beyond := s.Records()
	if len(beyond) == 0 || len(first)+len(beyond) != 9000 || len(first) < 3000 {
		t.Fatalf("%d are recorded, %d are not", len(first), len(beyond))
	}
	s.State.Status.PodStates = first
	again, _ := s.Records()
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

// TestRecordsComeToRest: what was recorded is recorded the same again, whatever there is; each Pod that is ready on a known node is recorded,
// and nothing is recorded of a Pod that there neither is nor was.
func TestRecordsComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Seen{State: state(), Now: noon(), Nodes: nodes(), Places: Places{
			Known: rapid.Bool().Draw(t, "known"), Ordinal: true, Workload: "web",
			Replicas: rapid.Int32Range(0, 4).Draw(t, "replicas"), Start: rapid.Int32Range(0, 2).Draw(t, "start"),
		}}
		if rapid.Bool().Draw(t, "ages") {
			s.State.Spec.MaxAgeSeconds = new(int32(30))
		}
		names := []string{"web-0", "web-1", "web-2", "web-3", "web-4", "web-5"}
		s.State.Status.PodStates = records{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "recorded") {
				s.State.Status.PodStates[name] = on(rapid.SampledFrom([]string{"n1", "n2", "bare"}).Draw(t, "before"))
			}
			if rapid.Bool().Draw(t, "there") {
				p := ready(name, rapid.SampledFrom([]string{"n1", "n2", "bare", "n9"}).Draw(t, "node"))
				if rapid.Bool().Draw(t, "not ready") {
					p.Status.Conditions = nil
				}
				s.Pods = append(s.Pods, p)
			}
		}
		before := s.State.Status.PodStates
		first, _ := s.Records()
		for _, p := range s.Pods {
			if s.Nodes[p.Spec.NodeName] != nil && p.Status.Conditions != nil && first[p.Name].NodeName != p.Spec.NodeName {
				t.Fatalf("Pod %s on %s is recorded as %v", p.Name, p.Spec.NodeName, first[p.Name])
			}
		}
		for name := range first {
			_, was := before[name]
			if !was && !slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name == name }) {
				t.Fatalf("%s is recorded of no Pod", name)
			}
		}
		s.State = s.State.DeepCopy()
		s.State.Status.PodStates = maps.Clone(first)
		if again, _ := s.Records(); !cmp.Equal(first, again) {
			t.Fatalf("(-first +again):\n%s", cmp.Diff(first, again))
		}
	})
}

func TestUntil(t *testing.T) {
	s := Seen{State: state(), Now: noon()}
	s.State.Spec.MaxAgeSeconds = new(int32(60))
	if got := s.UntilDropped(records{"a": released(on("n1"), 10), "b": released(on("n1"), 40), "c": on("n1")}); got != 20*time.Second {
		t.Errorf("the first record is dropped in %s, want 20s", got)
	}
	if _, limited := s.UntilOverdue(unscheduled("web-0", 5)); limited {
		t.Error("a Pod is given up though nobody asked for that")
	}
	s.State.Spec.Fallback = &v1beta1.PersistentPodStateFallback{AfterSeconds: 60}
	if left, limited := s.UntilOverdue(unscheduled("web-0", 5)); left != 55*time.Second || !limited {
		t.Errorf("a Pod is given up in %s, %t, want 55s", left, limited)
	}
	other := unscheduled("web-0", 5)
	other.Annotations[keys.InjectedPodState] = "another"
	if _, limited := s.UntilOverdue(other); limited {
		t.Error("a Pod of another PersistentPodState is given up")
	}
	if text := Describe(on("n1")); !strings.HasPrefix(text, host+"=n1, ") || !strings.HasSuffix(text, zone+"=a") {
		t.Errorf("the place is told as %q", text)
	}
}
