package nodepodprobe

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleOnlyItsOwn = "nothing of a Pod is written but what markers name"
	ruleNoResults  = "the results of a node are its daemon's"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a promise was broken:
// a write for a node that was gone met a conflict.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 719, 1703, 3313, 4314) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*plan.Action)
		want    string
	}{
		"it writes a label of somebody else": {func(a *plan.Action) {
			if p, is := a.After.(*corev1.Pod); is {
				p.Labels["rogue"] = "true"
			}
		}, ruleOnlyItsOwn},
		"it forgets a probe": {func(a *plan.Action) {
			if n, is := a.After.(*v1alpha1.NodePodProbe); is && len(n.Spec.PodProbes) > 1 {
				n.Spec.PodProbes = n.Spec.PodProbes[1:]
			}
		}, "probes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(promises.Misplan(Plan, tc.mistake)).Break(t, tc.want)
		})
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters with nodes, Pods and markers that come, change and go.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(v1alpha1.AddToScheme),
		Watched: []client.Object{&corev1.Node{}, &v1alpha1.NodePodProbe{}, &v1alpha1.PodProbeMarker{}, &corev1.Pod{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			for range 10 {
				s.act()
			}
			same := func(v Snapshot) Snapshot { return v }
			planner := promises.Planner[Snapshot, Snapshot]{Plan: planned, Take: same, Snapshot: same}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind(Options{})
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.daemon}, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that the controller has broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	for _, c := range history {
		if c.Pass == nil || c.Before == nil || c.After == nil {
			continue
		}
		switch after := c.After.(type) {
		case *corev1.Pod:
			before := c.Before.(*corev1.Pod)
			if !equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.Labels["app"] != after.Labels["app"] || after.Labels["rogue"] != "" ||
				before.Status.Phase != after.Status.Phase || before.Annotations["rogue"] != after.Annotations["rogue"] {
				out = append(out, invariant.Violation{Rule: ruleOnlyItsOwn, Revision: c.Revision, Text: after.Name})
			}
		case *v1alpha1.NodePodProbe:
			if !equality.Semantic.DeepEqual(c.Before.(*v1alpha1.NodePodProbe).Status, after.Status) {
				out = append(out, invariant.Violation{Rule: ruleNoResults, Revision: c.Revision, Text: after.Name})
			}
		}
	}
	return out
}

// scenario is an administrator of nodes, users with Pods and markers, and the daemons of the nodes.
type scenario struct{ promises.User }

func all[T client.Object](s *scenario, kind string) []T {
	var out []T
	gvk := v1alpha1.GroupVersion.WithKind(kind)
	if kind == "Node" {
		gvk = corev1.SchemeGroupVersion.WithKind(kind)
	}
	for _, object := range s.Cluster.Of(gvk) {
		out = append(out, object.(T))
	}
	return out
}

func (s *scenario) markers() []*v1alpha1.PodProbeMarker {
	return all[*v1alpha1.PodProbeMarker](s, "PodProbeMarker")
}

func (s *scenario) nodes() []*v1alpha1.NodePodProbe {
	return all[*v1alpha1.NodePodProbe](s, "NodePodProbe")
}

func (s *scenario) app() map[string]string {
	return map[string]string{"app": []string{"a", "b"}[s.Rand.Intn(2)]}
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) addMarker() {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("m", s.Rand.Intn(3))}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: s.app()}
	m.Spec.Probes = s.probes()
	s.create(m)
}

func (s *scenario) probes() []v1alpha1.PodContainerProbe {
	var out []v1alpha1.PodContainerProbe
	for i := range 1 + s.Rand.Intn(3) {
		p := v1alpha1.PodContainerProbe{
			Name: fmt.Sprint("p", i), ContainerName: "main", PodConditionType: fmt.Sprint("c", s.Rand.Intn(3), i),
		}
		p.Probe.Exec = &corev1.ExecAction{Command: []string{fmt.Sprint("ask", s.Rand.Intn(2))}}
		if s.Chance(50) {
			p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
				{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{fmt.Sprint("idle", i): "true"}},
			}
		}
		out = append(out, p)
	}
	return out
}

// act does something that somebody might do at any moment.
func (s *scenario) act() {
	pods, markers, nodes := s.Pods(), s.markers(), s.nodes()
	switch n := s.Rand.Intn(100); {
	case n < 20:
		s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", s.Rand.Intn(10))}})
	case n < 40 || len(pods) == 0:
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", s.Rand.Intn(20)), Labels: s.app()}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: s.Image()}}
		s.create(p)
	case n < 55 || len(markers) == 0:
		s.addMarker()
	case n < 62:
		s.Cluster.Delete(promises.UserActor, markers[s.Rand.Intn(len(markers))])
	case n < 70:
		simulate.Update(
			s.Cluster, promises.UserActor, markers[s.Rand.Intn(len(markers))],
			func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = s.probes() },
		)
	case n < 75:
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	case n < 80:
		app := s.app()["app"]
		simulate.Update(s.Cluster, promises.UserActor, pods[s.Rand.Intn(len(pods))], func(p *corev1.Pod) { p.Labels["app"] = app })
	case n < 84 && len(nodes) > 0:
		s.Cluster.Delete(promises.UserActor, nodes[s.Rand.Intn(len(nodes))])
	case n < 88 && len(nodes) > 0:
		simulate.Update(
			s.Cluster, promises.UserActor, nodes[s.Rand.Intn(len(nodes))], func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes = nil },
		)
	case n < 92:
		s.actOnNode()
	default:
		s.Meddle(pods[s.Rand.Intn(len(pods))])
	}
}

func (s *scenario) actOnNode() {
	nodes := all[*corev1.Node](s, "Node")
	if len(nodes) == 0 {
		return
	}
	chosen := nodes[s.Rand.Intn(len(nodes))]
	if s.Chance(50) {
		s.Cluster.Delete(promises.UserActor, chosen)
		return
	}
	simulate.Update(
		s.Cluster, promises.UserActor, chosen, func(n *corev1.Node) { n.Labels = map[string]string{keys.NodeType: keys.NodeTypeVirtual} },
	)
}

// daemon has the daemon of one node report a result that is missing, or drop one that is no longer wanted, and reports whether there was any.
func (s *scenario) daemon() bool {
	for _, n := range s.nodes() {
		known := map[string]v1alpha1.ContainerProbeState{}
		for _, p := range n.Status.PodProbeStatuses {
			for _, state := range p.ProbeStates {
				known[p.UID+state.Name] = state
			}
		}
		var status v1alpha1.NodePodProbeStatus
		for _, p := range n.Spec.PodProbes {
			of := v1alpha1.PodProbeStatus{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
			for _, asked := range p.Probes {
				state, ok := known[p.UID+asked.Name]
				if !ok {
					now := metav1.NewTime(s.Cluster.Now()).Rfc3339Copy()
					state = v1alpha1.ContainerProbeState{
						Name: asked.Name, State: v1alpha1.ProbeFailed, LastProbeTime: now, LastTransitionTime: now,
					}
					if s.Chance(50) {
						state.State, state.Message = v1alpha1.ProbeSucceeded, "yes"
					}
				}
				of.ProbeStates = append(of.ProbeStates, state)
			}
			status.PodProbeStatuses = append(status.PodProbeStatuses, of)
		}
		if !equality.Semantic.DeepEqual(status, n.Status) {
			simulate.Update(s.Cluster, "daemon", n, func(n *v1alpha1.NodePodProbe) { n.Status = status })
			return true
		}
	}
	return false
}

// converged returns what is left undone when the cluster is at rest.
func (s *scenario) converged() []string {
	var out []string
	markers := probe.NewMarkers(s.markers())
	wanted := map[string]bool{}
	for _, node := range all[*corev1.Node](s, "Node") {
		if node.Labels[keys.NodeType] == keys.NodeTypeVirtual {
			continue
		}
		wanted[node.Name] = true
		var pods []*corev1.Pod
		for _, p := range s.Pods() {
			if p.Spec.NodeName == node.Name {
				pods = append(pods, p)
			}
		}
		probes, _ := markers.PodProbes(pods)
		n, _ := s.Cluster.Get(simulate.Key{Kind: v1alpha1.GroupVersion.WithKind("NodePodProbe"), Name: node.Name}).(*v1alpha1.NodePodProbe)
		if n == nil || !equality.Semantic.DeepEqual(n.Spec.PodProbes, probes) {
			out = append(out, fmt.Sprintf("node %s has probes %+v, want %+v", node.Name, n, probes))
			continue
		}
		for _, p := range pods {
			of, _ := markers.ProbesOf(p)
			if probe.IsProbed(p) && probe.Mark(p, of, probe.ResultsOf(p, &n.Status)) != p {
				out = append(out, fmt.Sprintf("Pod %s does not show the results of its probes", p.Name))
			}
		}
	}
	for _, n := range s.nodes() {
		if !wanted[n.Name] {
			out = append(out, fmt.Sprintf("node %s has probes, and no daemon", n.Name))
		}
	}
	return out
}
