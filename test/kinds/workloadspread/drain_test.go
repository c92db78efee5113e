package workloadspread

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// TestDrain drains a node as kubectl does, through a WorkloadSpread and a PodUnavailableBudget together: the budget lets one Pod go at a time, and each comes
// back in the subset that it was in, on its other node.
func TestDrain(t *testing.T) {
	e := newEnv(t)
	const node, budget = "sim-7", 1
	e.over("apps/v1", "Deployment", "web", "drain=4", "b")
	e.workload("apps/v1", "Deployment", "web", 6)
	want := map[string]int{"drain": 4, "b": 2}
	e.spreads("web", want)
	e.Make(fmt.Sprintf(`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: web},
		spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxUnavailable: %d}}`, budget))
	e.Eventually("all Pods are ready", func() error { return e.allReady(6) })
	e.Eventually("the budget is in force", func() error {
		b := &policyv1beta1.PodUnavailableBudget{}
		e.Read("web", b)
		if b.Status.ObservedGeneration != b.Generation || b.Status.UnavailableAllowed != budget {
			return fmt.Errorf("its status is %+v", b.Status)
		}
		return nil
	})
	e.EditNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	e.Cleanup(func() {
		e.Ctx = e.Afterwards()
		e.EditNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	})
	evicted := 0
	e.Within(2*time.Minute, "the node is drained", func() error {
		if ready := e.ready(); ready < 6-budget {
			t.Errorf("%d Pods are ready, want %d at least", ready, 6-budget)
		}
		left := 0
		for _, p := range e.active() {
			if p.Spec.NodeName != node {
				continue
			}
			left++
			err := e.Client.SubResource("eviction").Create(e.Ctx, &p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
			switch {
			case err == nil:
				evicted++
			case apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err): // kubectl tries again
			default:
				e.Must(err)
			}
		}
		if left > 0 {
			return fmt.Errorf("%d Pods are left", left)
		}
		return nil
	})
	if evicted == 0 {
		t.Error("no Pod was on the node")
	}
	e.spreads("web", want)
	for _, p := range e.active() {
		if m, _ := spread.MatchedOf(&p); m.Subset == "drain" && p.Spec.NodeName == node {
			t.Errorf("Pod %s is on the node that was drained", p.Name)
		}
	}
	e.Eventually("all Pods are ready again", func() error { return e.allReady(6) })
}

// TestSurplusIsMoved lowers a limit with surplusPolicy Move: the surplus Pods go one by one, never more than the budget allows, and come back in the next subset.
func TestSurplusIsMoved(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=4", "b")
	e.workload(clone, "CloneSet", "web", 5)
	e.spreads("web", map[string]int{"a": 4, "b": 1})
	e.Make(`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: web},
		spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}, maxUnavailable: 1}}`)
	e.Eventually("all Pods are ready", func() error { return e.allReady(5) })
	e.patch(clone, "WorkloadSpread", "web", `{"spec":{"surplusPolicy":"Move","subsets":[{"name":"a","maxReplicas":2,"requiredNodeSelector":{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}},
		{"name":"b","requiredNodeSelector":{"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]}}]}}`)
	e.Within(time.Minute, "the surplus is in the other subset", func() error {
		if ready := e.ready(); ready < 4 {
			t.Errorf("%d Pods are ready, want 4 at least", ready)
		}
		if got := e.subsets(); got["a"] != 2 || got["b"] != 3 {
			return fmt.Errorf("the subsets are %v", got)
		}
		return nil
	})
	e.tally("web", 5, 0, 0)
	if n := slices.Index(e.Reasons("web"), "SurplusPodMoved"); n < 0 {
		t.Errorf("the events are %v", e.Reasons("web"))
	}
}

func (e *env) ready() (n int) {
	e.Helper()
	for _, p := range e.active() {
		if pod.IsReady(&p) {
			n++
		}
	}
	return n
}

func (e *env) allReady(want int) error {
	if n := e.ready(); n != want {
		return fmt.Errorf("%d of %d are", n, want)
	}
	if len(e.active()) != want {
		return errors.New("there are more")
	}
	return nil
}
