// Package workloadspread spreads Pods over zones by WorkloadSpreads, as a user would have it, on a real control plane with simulated nodes: one cluster
// and one manager for all tests, and for each a namespace of its own.
package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// spare is a node that takes no Pods until a test wants it.
const spare = "sim-9"

// shared is the cluster of all tests: two nodes in each of the zones a, b, c and drain, and a spare one.
var shared = &scene.Site{Name: "spread", Options: cluster.Options{Nodes: 9}, Args: []string{"--enable-leader-election=false"}}

var zoned sync.Once

func TestMain(m *testing.M) { scene.Main(m, shared, bare) }

// env is a namespace for one test.
type env struct{ *scene.Env }

// newEnv returns a namespace for a test that runs beside others.
func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	zoned.Do(func() {
		for i, zone := range []string{"a", "a", "b", "b", "c", "c", "drain", "drain"} {
			e.EditNode(fmt.Sprintf("sim-%d", i+1), func(node *corev1.Node) { node.Labels["zone"] = zone })
		}
		e.EditNode(spare, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	})
	return e
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	var spreads v1beta1.WorkloadSpreadList
	if err := e.Client.List(context.Background(), &spreads, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	for i := range spreads.Items {
		text, err := yaml.Marshal(spreads.Items[i].Status)
		fmt.Fprintf(&out, "WorkloadSpread %s: %s %v\n", spreads.Items[i].Name, text, err)
	}
	for _, p := range e.Pods() {
		fmt.Fprintf(&out, "Pod %s on %q %s deleted=%v labels=%v annotations=%v\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp,
			p.Labels, p.Annotations)
	}
	return out.String()
}

// over makes a WorkloadSpread of a workload with subsets such as "a=3" and "b", each in the zone of its name.
func (e *env) over(apiVersion, kind, name string, subsets ...string) {
	e.Helper()
	e.Make(spreadOf(apiVersion, kind, name, subsets...))
}

func spreadOf(apiVersion, kind, name string, subsets ...string) string {
	out := fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: %s}
spec:
  targetRef: {apiVersion: %s, kind: %s, name: %s}
  subsets:`, name, apiVersion, kind, name)
	for _, subset := range subsets {
		zone, most, limited := strings.Cut(subset, "=")
		out += fmt.Sprintf("\n  - name: %[1]s\n    requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [%[1]s]}]}"+
			"\n    patch: {metadata: {labels: {subset: %[1]s}}}", zone)
		if limited {
			out += "\n    maxReplicas: " + most
		}
	}
	return out
}

// workload makes a workload with a Pod template.
func (e *env) workload(apiVersion, kind, name string, replicas int) {
	e.Helper()
	more := ""
	if kind == "StatefulSet" {
		more = "\n  serviceName: web\n  podManagementPolicy: Parallel"
	}
	e.Make(fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: %[3]s}
spec:
  replicas: %d%s
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: "nginx:1"}]`, apiVersion, kind, name, replicas, more))
}

// scale changes the number of replicas.
func (e *env) scale(apiVersion, kind, name string, replicas int) {
	e.Helper()
	e.patch(apiVersion, kind, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (e *env) patch(apiVersion, kind, name, patch string) {
	e.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(e.Namespace)
	o.SetName(name)
	e.Must(e.Client.Patch(e.Ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// active returns the active Pods, by name.
func (e *env) active() []corev1.Pod {
	e.Helper()
	pods := slices.DeleteFunc(e.Pods(), func(p corev1.Pod) bool { return !pod.IsActive(&p) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// subsets returns how many active Pods each subset has; those of none are under "".
func (e *env) subsets() map[string]int {
	e.Helper()
	out := map[string]int{}
	for _, p := range e.active() {
		m, _ := spread.MatchedOf(&p)
		out[m.Subset]++
	}
	return out
}

// spreads waits until the active Pods are in these subsets and the status says so, with nothing in the ledger.
func (e *env) spreads(name string, want map[string]int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("WorkloadSpread %s has %v", name, want), func() error {
		if diff := cmp.Diff(want, e.subsets()); diff != "" {
			return fmt.Errorf("Pods (-want +got):\n%s", diff)
		}
		s := e.read(name)
		if s.Status.ObservedGeneration != s.Generation {
			return errors.New("its spec has not been seen")
		}
		for _, one := range s.Status.SubsetStatuses {
			if int(one.Replicas) != want[one.Name] || len(one.CreatingPods)+len(one.DeletingPods) > 0 {
				return fmt.Errorf("the status says %+v of subset %s", one, one.Name)
			}
		}
		for _, p := range e.active() {
			if p.Spec.NodeName == "" {
				return fmt.Errorf("Pod %s has no node", p.Name)
			}
		}
		return nil
	})
}

func (e *env) read(name string) *v1beta1.WorkloadSpread {
	e.Helper()
	s := &v1beta1.WorkloadSpread{}
	e.Read(name, s)
	return s
}

// costs waits until the active Pods have these deletion costs, by subset and sorted.
func (e *env) costs(want map[string][]string) {
	e.Helper()
	e.Eventually(fmt.Sprintf("the costs are %v", want), func() error {
		got := map[string][]string{}
		for _, p := range e.active() {
			m, _ := spread.MatchedOf(&p)
			got[m.Subset] = append(got[m.Subset], p.Annotations[corev1.PodDeletionCost])
		}
		for _, costs := range got {
			slices.Sort(costs)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// tally waits until the status says how many Pods are in a subset, in none, and above the limits.
func (e *env) tally(name string, assigned, unassigned, overflow int32) {
	e.Helper()
	e.Eventually("the Pods are tallied", func() error {
		s := e.read(name).Status
		if s.Assigned != assigned || s.Unassigned != unassigned || s.Overflow != overflow {
			return fmt.Errorf("assigned are %d, unassigned %d, overflow %d; want %d, %d, %d", s.Assigned, s.Unassigned, s.Overflow, assigned, unassigned,
				overflow)
		}
		return nil
	})
}

func names(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	return out
}
