package probe

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// crowd returns a marker with so many probes of a namespace, and so many Pods for them.
func crowd(namespace string, probes, pods int) (*v1alpha1.PodProbeMarker, []*corev1.Pod) {
	m := asker("m", 0, "")
	m.Namespace, m.Spec.Probes = namespace, make([]v1alpha1.PodContainerProbe, probes)
	for i := range m.Spec.Probes {
		m.Spec.Probes[i] = v1alpha1.PodContainerProbe{Name: fmt.Sprint("p", i), ContainerName: "main", PodConditionType: fmt.Sprint("c", i)}
		m.Spec.Probes[i].Probe.Exec = &corev1.ExecAction{Command: []string{"ask"}}
	}
	var all []*corev1.Pod
	for i := range pods {
		p := askable(fmt.Sprint("p", i))
		p.Namespace = namespace
		all = append(all, p)
	}
	return m, all
}

// TestOneNamespaceDoesNotTakeTheShareOfOthers: its probes wait, and theirs run.
func TestOneNamespaceDoesNotTakeTheShareOfOthers(t *testing.T) {
	greedy, pods := crowd("greedy", 64, 60)
	modest, morePods := crowd("modest", 2, 20)
	all := slices.Concat(pods, morePods)
	got, leftOut := NewMarkers([]*v1alpha1.PodProbeMarker{greedy, modest}).PodProbes(all)
	counts := map[string]int{}
	for _, p := range got {
		counts[p.Namespace] += len(p.Probes)
	}
	if counts["modest"] != 40 || leftOut[modest] != 0 {
		t.Errorf("of 40 probes of the modest namespace run %d, %d are left out", counts["modest"], leftOut[modest])
	}
	if counts["greedy"] < 200 || leftOut[greedy] != 60*64-counts["greedy"] {
		t.Errorf("of %d probes of the greedy namespace run %d, %d are left out", 60*64, counts["greedy"], leftOut[greedy])
	}
	again, _ := NewMarkers([]*v1alpha1.PodProbeMarker{modest, greedy}).PodProbes(append(morePods, pods...))
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("it depends on the order of the Pods:\n%s", diff)
	}
}

// TestTwoGreedyNamespacesShare: each gets as much as the other.
func TestTwoGreedyNamespacesShare(t *testing.T) {
	a, pods := crowd("a", 64, 55)
	b, morePods := crowd("b", 30, 55)
	got, _ := NewMarkers([]*v1alpha1.PodProbeMarker{a, b}).PodProbes(append(pods, morePods...))
	counts := map[string]int{}
	for _, p := range got {
		counts[p.Namespace] += len(p.Probes)
	}
	if difference := counts["a"] - counts["b"]; difference < -5 || difference > 5 || counts["a"] < 100 {
		t.Errorf("they get %v", counts)
	}
}

// TestUsualNodesRunAll: what a full node of Pods with a few probes each needs is not limited.
func TestUsualNodesRunAll(t *testing.T) {
	m, pods := crowd("ns", 4, 110)
	got, leftOut := NewMarkers([]*v1alpha1.PodProbeMarker{m}).PodProbes(pods)
	if len(got) != 110 || len(got[0].Probes) != 4 || len(leftOut) != 0 {
		t.Errorf("%d Pods are probed, left out %v", len(got), leftOut)
	}
}

// TestNodePodProbesCanBeStored: whatever probes are called, do and say, the NodePodProbe with all results is small enough for the API server.
func TestNodePodProbesCanBeStored(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, pods := crowd("ns", 1+r.IntN(64), 1+r.IntN(110))
		m.Name = strings.Repeat("m", 1+r.IntN(253))
		for i := range m.Spec.Probes {
			m.Spec.Probes[i].Name += strings.Repeat("n", r.IntN(250))
			m.Spec.Probes[i].Probe.Exec.Command = []string{strings.Repeat("<", r.IntN(1+r.IntN(3000)))}
		}
		var n v1alpha1.NodePodProbe
		n.Spec.PodProbes, _ = NewMarkers([]*v1alpha1.PodProbeMarker{m}).PodProbes(pods)
		for _, p := range n.Spec.PodProbes {
			s := v1alpha1.PodProbeStatus{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
			for _, probe := range p.Probes {
				s.ProbeStates = append(s.ProbeStates, v1alpha1.ContainerProbeState{
					Name: probe.Name, State: v1alpha1.ProbeSucceeded, LastProbeTime: noon(), LastTransitionTime: noon(),
					Message: Message(strings.Repeat([]string{"\x01", "a", "\n", "é"}[r.IntN(4)], 3000) + "."),
				})
			}
			n.Status.PodProbeStatuses = append(n.Status.PodProbeStatuses, s)
		}
		text, err := json.Marshal(n)
		if err != nil || len(text) > 1400<<10 || len(n.Spec.PodProbes) == 0 {
			t.Errorf("seed %d: the probes of %d Pods take %d KiB: %v", seed, len(n.Spec.PodProbes), len(text)>>10, err)
		}
	}
}

func TestMessagesOfControlCharacters(t *testing.T) {
	if got := Message(strings.Repeat("\x01", 3000) + "."); len(got) != 256 {
		t.Errorf("it keeps %d", len(got))
	}
	if got := Message(strings.Repeat("a\n", 3000)); len(got) != 1024 {
		t.Errorf("of ordinary lines it keeps %d", len(got))
	}
}
