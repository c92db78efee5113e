package podprobemarker

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	ruleKept = "a deleted marker is kept until no node runs its probes any more"
	ruleSpec = "the spec of a marker is its user's"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*Snapshot)
		want    string
	}{
		"it does not look at nodes": {func(v *Snapshot) { v.Nodes = 0 }, ruleKept},
		"it waits for ever":         {func(v *Snapshot) { v.Nodes = 1 }, "is still there"},
		"it forgets its finalizer": {
			func(v *Snapshot) { v.Marker = v.Marker.DeepCopy(); v.Marker.Finalizers = []string{keys.ProbeCleanup} }, "has finalizers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v Snapshot) plan.Plan { tc.mistake(&v); return Plan(v) }).Break(t, tc.want)
		})
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters with markers and Pods that come and go, and nodes that follow them.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(v1alpha1.AddToScheme),
		Watched: []client.Object{&v1alpha1.PodProbeMarker{}, &corev1.Pod{}, &v1alpha1.NodePodProbe{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			for i := range 10 {
				s.create(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}})
			}
			for range 10 {
				s.act()
			}
			same := func(v Snapshot) Snapshot { return v }
			planner := promises.Planner[Snapshot, Snapshot]{Plan: planned, Take: same, Snapshot: same}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind()
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.followMarkers}, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that the controller has broken in a history, by what it had seen of the nodes.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	nodes := map[string][]simulate.Change{}
	for _, c := range history {
		if c.Key.Kind.Kind == "NodePodProbe" {
			nodes[c.Key.Name] = append(nodes[c.Key.Name], c)
		}
		before, is := c.Before.(*v1alpha1.PodProbeMarker)
		if !is || c.Pass == nil {
			continue
		}
		if after, still := c.After.(*v1alpha1.PodProbeMarker); still {
			if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
				out = append(out, invariant.Violation{Rule: ruleSpec, Revision: c.Revision, Text: before.Name})
			}
			continue
		}
		for node, changes := range nodes {
			var seen *v1alpha1.NodePodProbe
			for _, change := range changes {
				if change.Revision <= c.Pass.Seen[change.Key.Kind] {
					seen, _ = change.After.(*v1alpha1.NodePodProbe)
				}
			}
			if markersOf(seen)[types.NamespacedName{Namespace: before.Namespace, Name: before.Name}] {
				out = append(out, invariant.Violation{Rule: ruleKept, Revision: c.Revision, Text: before.Name + " on " + node})
			}
		}
	}
	return out
}

// scenario is users with markers and Pods, and nodes whose probes follow from these.
type scenario struct{ promises.User }

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) markers() []*v1alpha1.PodProbeMarker {
	var out []*v1alpha1.PodProbeMarker
	for _, object := range s.Cluster.Of(v1alpha1.GroupVersion.WithKind("PodProbeMarker")) {
		out = append(out, object.(*v1alpha1.PodProbeMarker))
	}
	return out
}

func (s *scenario) app() map[string]string {
	return map[string]string{"app": []string{"a", "b"}[s.Rand.Intn(2)]}
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	pods, markers := s.Pods(), s.markers()
	switch n := s.Rand.Intn(100); {
	case n < 30 || len(pods) == 0:
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", s.Rand.Intn(20)), Labels: s.app()}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: s.Image()}}
		s.create(p)
	case n < 55 || len(markers) == 0:
		m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("m", s.Rand.Intn(4))}}
		m.Spec.Selector = &metav1.LabelSelector{MatchLabels: s.app()}
		m.Spec.Probes = []v1alpha1.PodContainerProbe{{Name: "p", ContainerName: "main", PodConditionType: fmt.Sprint("c", s.Rand.Intn(3))}}
		s.create(m)
	case n < 70:
		s.Cluster.Delete(promises.UserActor, markers[s.Rand.Intn(len(markers))])
	case n < 80:
		simulate.Update(s.Cluster, promises.UserActor, markers[s.Rand.Intn(len(markers))], func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = []v1alpha1.PodContainerProbe{
				{Name: fmt.Sprint("p", s.Rand.Intn(2)), ContainerName: "main", PodConditionType: "c"},
			}
		})
	case n < 87:
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	case n < 94:
		app := s.app()["app"]
		simulate.Update(s.Cluster, promises.UserActor, pods[s.Rand.Intn(len(pods))], func(p *corev1.Pod) { p.Labels["app"] = app })
	default:
		s.Meddle(pods[s.Rand.Intn(len(pods))])
	}
}

// followMarkers writes the probes of one node as they are to be, and reports whether there were any to write.
func (s *scenario) followMarkers() bool {
	markers := probe.NewMarkers(s.markers())
	for _, object := range s.Cluster.Of(v1alpha1.GroupVersion.WithKind("NodePodProbe")) {
		var pods []*corev1.Pod
		for _, p := range s.Pods() {
			if p.Spec.NodeName == object.GetName() {
				pods = append(pods, p)
			}
		}
		probes, _ := markers.PodProbes(pods)
		n := object.(*v1alpha1.NodePodProbe)
		if !equality.Semantic.DeepEqual(n.Spec.PodProbes, probes) {
			simulate.Update(s.Cluster, "nodepodprobe", n, func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes = probes })
			return true
		}
	}
	return false
}

// converged returns what is left undone when the cluster is at rest.
func (s *scenario) converged() []string {
	var out []string
	for _, m := range s.markers() {
		if m.DeletionTimestamp != nil {
			out = append(out, fmt.Sprintf("marker %s is deleted, and is still there", m.Name))
			continue
		}
		matched := int64(0)
		for _, p := range s.Pods() {
			if probe.IsProbed(p) && p.Labels["app"] == m.Spec.Selector.MatchLabels["app"] {
				matched++
			}
		}
		if len(m.Finalizers) != 1 {
			out = append(out, fmt.Sprintf("marker %s has finalizers %v", m.Name, m.Finalizers))
		}
		if m.Status.MatchedPods != matched || m.Status.ObservedGeneration != m.Generation {
			out = append(out, fmt.Sprintf("marker %s says %+v, want %d Pods of generation %d", m.Name, m.Status, matched, m.Generation))
		}
	}
	return out
}
