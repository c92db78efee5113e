package pods

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// knownStates is a PodStateReader of what is in it.
type knownStates struct {
	states []*v1beta1.PersistentPodState
	nodes  []*corev1.Node
	// noNodes means that nodes must not be asked for.
	noNodes bool
}

func (k knownStates) PodStates(context.Context, string) ([]*v1beta1.PersistentPodState, error) {
	return k.states, nil
}

func (k knownStates) Nodes(context.Context) ([]*corev1.Node, error) {
	if k.noNodes {
		return nil, errors.New("nobody needs the nodes")
	}
	return k.nodes, nil
}

func TestPodStates(t *testing.T) {
	stateOf := func(name, target, value string) *v1beta1.PersistentPodState {
		s := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		s.Spec.TargetRef = v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: target}
		s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
		s.Status.PodStates = map[string]v1beta1.PodState{"web-0": {NodeName: "n", NodeTopologyLabels: map[string]string{"zone": value}}}
		return s
	}
	falling := stateOf("pps", "web", "a")
	falling.Spec.Fallback = &v1beta1.PersistentPodStateFallback{AfterSeconds: 5}
	inA := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}}}
	cases := map[string]struct {
		known  knownStates
		dryRun bool
		pod    func(*corev1.Pod)
		want   map[string]string
	}{
		"of its workload":       {known: knownStates{states: []*v1beta1.PersistentPodState{stateOf("x", "db", "b"), stateOf("pps", "web", "a")}, noNodes: true}, want: map[string]string{"zone": "a"}},
		"two of them":           {known: knownStates{states: []*v1beta1.PersistentPodState{stateOf("y", "web", "b"), stateOf("pps", "web", "a")}, noNodes: true}, want: map[string]string{"zone": "a"}},
		"of another workload":   {known: knownStates{states: []*v1beta1.PersistentPodState{stateOf("x", "db", "b")}, noNodes: true}},
		"nothing is stored":     {known: knownStates{states: []*v1beta1.PersistentPodState{stateOf("pps", "web", "a")}}, dryRun: true},
		"a Pod of nobody":       {known: knownStates{states: []*v1beta1.PersistentPodState{stateOf("pps", "web", "a")}}, pod: func(p *corev1.Pod) { p.OwnerReferences = nil }},
		"without a name":        {known: knownStates{states: []*v1beta1.PersistentPodState{stateOf("pps", "web", "a")}}, pod: func(p *corev1.Pod) { p.Name, p.GenerateName = "", "web-" }},
		"its zone is there":     {known: knownStates{states: []*v1beta1.PersistentPodState{falling}, nodes: []*corev1.Node{inA}}, want: map[string]string{"zone": "a"}},
		"its zone is not there": {known: knownStates{states: []*v1beta1.PersistentPodState{falling}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)},
			}}}
			if tc.pod != nil {
				tc.pod(p)
			}
			s := &Subject{Namespace: "ns", DryRun: tc.dryRun, requested: p}
			step := PodStates(tc.known)
			for range 2 { // the API server may ask twice
				if err := step.Run(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, s.Pod().Spec.NodeSelector); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (s.changed != nil) != (tc.want != nil) {
				t.Error("a Pod that is not bound is copied")
			}
		})
	}
}
