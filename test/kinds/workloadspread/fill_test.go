package workloadspread

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// filling makes a WorkloadSpread over subsets of which each has one more field.
func (e *env) filling(spreadText, field string, values ...int64) {
	e.Helper()
	o := e.Manifest(spreadText)
	subsets, _, err := unstructured.NestedSlice(o.Object, "spec", "subsets")
	e.Must(err)
	for i, value := range values {
		subsets[i].(map[string]any)[field] = value
	}
	e.Must(unstructured.SetNestedSlice(o.Object, subsets, "spec", "subsets"))
	e.Must(e.Client.Create(e.Ctx, o))
}

// TestFloorsAreFilledFirst: each subset gets its minReplicas before any gets more, and they are the last to go.
func TestFloorsAreFilledFirst(t *testing.T) {
	e := newEnv(t)
	e.filling(spreadOf(clone, "CloneSet", "web", "a=3", "b"), "minReplicas", 1, 2)
	e.workload(clone, "CloneSet", "web", 4)
	e.spreads("web", map[string]int{"a": 2, "b": 2})
	e.costs(map[string][]string{"a": {"200", "400"}, "b": {"300", "300"}})
	e.scale(clone, "CloneSet", "web", 6)
	e.spreads("web", map[string]int{"a": 3, "b": 3})
	e.scale(clone, "CloneSet", "web", 3)
	e.spreads("web", map[string]int{"a": 1, "b": 2})
}

// TestWeights: equal weights keep the subsets even, whatever number of Pods there is, without a limit.
func TestWeights(t *testing.T) {
	e := newEnv(t)
	e.filling(spreadOf("apps/v1", "Deployment", "web", "a", "b", "c"), "weight", 1, 1, 1)
	e.workload("apps/v1", "Deployment", "web", 6)
	e.spreads("web", map[string]int{"a": 2, "b": 2, "c": 2})
	e.scale("apps/v1", "Deployment", "web", 9)
	e.spreads("web", map[string]int{"a": 3, "b": 3, "c": 3})
	e.scale("apps/v1", "Deployment", "web", 4)
	e.Eventually("four Pods are spread evenly", func() error {
		got := e.subsets()
		if all := []int{got["a"], got["b"], got["c"]}; len(e.active()) != 4 || slices.Max(all) != 2 || slices.Min(all) != 1 {
			return fmt.Errorf("the subsets are %v", got)
		}
		return nil
	})
	e.patch("apps/v1", "Deployment", "web", `{"spec":{"replicas":6,"template":{"spec":{"containers":[{"name":"app","image":"nginx:2"}]}}}}`)
	e.Eventually("a rollout leaves them even", func() error {
		for _, p := range e.active() {
			if p.Spec.Containers[0].Image != "nginx:2" {
				return errors.New("it is not over")
			}
		}
		if got := e.subsets(); got["a"] != 2 || got["b"] != 2 || got["c"] != 2 {
			return fmt.Errorf("the subsets are %v", got)
		}
		return nil
	})
	e.refusesMixedWeights()
}

func (e *env) refusesMixedWeights() {
	e.Helper()
	err := scene.TryEdit(e.Env, "web", &v1beta1.WorkloadSpread{}, func(s *v1beta1.WorkloadSpread) { s.Spec.Subsets[1].Weight = nil })
	if err == nil {
		e.Error("a subset without a weight is admitted among others that have one")
	}
}

// TestGatedPods: Pods with the scheduling gate are in a subset before they are scheduled, also those that no manager was asked about.
func TestGatedPods(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=2", "b")
	e.workload(clone, "CloneSet", "web", 0)
	e.patch(clone, "CloneSet", "web", `{"spec":{"replicas":2,"template":{"spec":{"schedulingGates":[{"name":"apps.kruise.io/workloadspread"}]}}}}`)
	e.spreads("web", map[string]int{"a": 2})
	e.scale(clone, "CloneSet", "web", 5)
	e.spreads("web", map[string]int{"a": 2, "b": 3})
}

// TestGatedPodsNobodyWasAskedAbout: such Pods wait, and the controller gives them to subsets before they are scheduled, within the limits.
func TestGatedPodsNobodyWasAskedAbout(t *testing.T) {
	e := &env{bare.Enter(t)}
	e.Describe = e.describe
	e.workload("apps/v1", "ReplicaSet", "web", 5)
	set := &appsv1.ReplicaSet{}
	e.Read("web", set)
	e.over("apps/v1", "ReplicaSet", "web", "a=2", "b")
	for range 5 {
		p := e.ownedBy(set)
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "apps.kruise.io/workloadspread"}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "own", Operator: corev1.TolerationOpExists}}
		p.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": "{}"} // the webhook leaves it alone
		e.Must(e.Client.Create(e.Ctx, p))
	}
	e.Eventually("all Pods are in a subset, and the ledger is empty", func() error {
		got, status := e.subsets(), e.read("web").Status.SubsetStatuses
		if got["a"] > 2 {
			t.Errorf("%d Pods are in subset a, want 2 at most", got["a"])
		}
		if got["a"] != 2 || got["b"] != 3 || len(status) != 2 || status[0].Replicas != 2 || len(status[0].CreatingPods) > 0 {
			return fmt.Errorf("the subsets are %v, the status is %+v", got, status)
		}
		return nil
	})
	for _, p := range e.active() {
		m, _ := spread.MatchedOf(&p)
		terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if len(p.Spec.SchedulingGates) > 0 || p.Labels["subset"] != m.Subset || terms[0].MatchExpressions[0].Values[0] != m.Subset ||
			(m.UID != "") != (m.Subset == "a") || !slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "own" }) {
			t.Errorf("Pod %s is in %+v with labels %v, terms %v and tolerations %v", p.Name, m, p.Labels, terms, p.Spec.Tolerations)
		}
	}
}
