// Package protection guards Pods by PodUnavailableBudgets, as a user would have it, on a real control plane with simulated nodes: one cluster and one
// manager for all tests, and for each a namespace of its own.
package protection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests. The lease of a manager that was killed must not keep the next one waiting.
var shared = &scene.Site{
	Name: "guard", Options: cluster.Options{Nodes: 8},
	Args: []string{"--enable-leader-election=false", "--feature-gates=PodUnavailableBudgetUpdateGate=true"},
}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// env is a namespace for one test.
type env struct{ *scene.Env }

// newEnv returns a namespace for a test that runs beside others.
func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newSerialEnv(t)
}

// newSerialEnv does the same for a test that runs alone, because it stops the manager.
func newSerialEnv(t *testing.T) *env {
	t.Helper()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	return e
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	var budgets v1beta1.PodUnavailableBudgetList
	if err := e.Client.List(context.Background(), &budgets, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	for i := range budgets.Items {
		text, err := yaml.Marshal(budgets.Items[i].Status)
		fmt.Fprintf(&out, "PodUnavailableBudget %s: %s %v\n", budgets.Items[i].Name, text, err)
	}
	for _, p := range e.Pods() {
		fmt.Fprintf(&out, "Pod %s on %q %s deleted=%v available=%v annotations=%v\n",
			p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, disruption.Available(&p), p.Annotations)
	}
	return out.String()
}

// budget reads a budget.
func (e *env) budget(name string) *v1beta1.PodUnavailableBudget {
	e.Helper()
	b := &v1beta1.PodUnavailableBudget{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, b))
	return b
}

// counts waits until the status of a budget says this of its present spec, with nothing in the ledger.
func (e *env) counts(name string, want disruption.Counts) {
	e.Helper()
	e.Eventually(fmt.Sprintf("budget %s counts %+v", name, want), func() error {
		b := e.budget(name)
		if b.Status.ObservedGeneration != b.Generation {
			return errors.New("its spec has not been seen")
		}
		if diff := cmp.Diff(want, disruption.CountsOf(&b.Status)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		if ledger := disruption.LedgerOf(&b.Status); ledger.Len() > 0 {
			return fmt.Errorf("the ledger holds %v", ledger)
		}
		return nil
	})
}

// deployment makes a Deployment whose Pods have the label app with its name, and waits until they are available.
func (e *env) deployment(name string, replicas int32) *appsv1.Deployment {
	e.Helper()
	e.Make(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: "nginx:1"}]`, name, replicas))
	d := &appsv1.Deployment{}
	e.Eventually("the Pods of Deployment "+name+" are available", func() error {
		e.Read(name, d)
		if d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("%d of %d are", d.Status.AvailableReplicas, replicas)
		}
		return nil
	})
	return d
}

// scale changes the number of replicas of a Deployment.
func (e *env) scale(name string, replicas int32) {
	e.Helper()
	d := &appsv1.Deployment{}
	e.Read(name, d)
	before := d.DeepCopy()
	d.Spec.Replicas = &replicas
	e.Must(e.Client.Patch(e.Ctx, d, client.MergeFrom(before)))
}

// available returns the Pods of the namespace that are available.
func (e *env) available() []corev1.Pod {
	e.Helper()
	var out []corev1.Pod
	for _, p := range e.Pods() {
		if disruption.Available(&p) {
			out = append(out, p)
		}
	}
	return out
}
