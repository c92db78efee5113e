package protection

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

const ofWeb = `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: %s}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  %s`

// gone waits until the namespace has no Pods.
func (e *env) gone() {
	e.Helper()
	e.Eventually("all Pods are gone", func() error {
		if pods := e.Pods(); len(pods) > 0 {
			return fmt.Errorf("%d are there", len(pods))
		}
		return nil
	})
}

func TestCountsOfADeployment(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 4)
	e.Make(fmt.Sprintf(ofWeb, "guard", "maxUnavailable: 1"))
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 4, Desired: 3, Total: 4})
	e.Eventually("all Pods are linked", func() error {
		for _, p := range e.Pods() {
			if disruption.Related(p.Annotations) != "guard" {
				return fmt.Errorf("%s has %v", p.Name, p.Annotations)
			}
		}
		return nil
	})
	e.scale("web", 0)
	e.gone()
	e.counts("guard", disruption.Counts{})
}

func TestNoPods(t *testing.T) {
	e := newEnv(t)
	e.Make(fmt.Sprintf(ofWeb, "guard", "maxUnavailable: 1"))
	e.counts("guard", disruption.Counts{})
	e.Eventually("an event says so", func() error {
		if reasons := e.Reasons("guard"); !slices.Contains(reasons, "NoPods") {
			return fmt.Errorf("the events are %v", reasons)
		}
		return nil
	})
}

// TestADeletedDeploymentGoes: whatever is to stay available of it.
func TestADeletedDeploymentGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		numbers string
		want    disruption.Counts
		left    disruption.Counts
	}{
		"with a most":  {"maxUnavailable: 1", disruption.Counts{Allowed: 1, Current: 4, Desired: 3, Total: 4}, disruption.Counts{}},
		"with a least": {"minAvailable: 3", disruption.Counts{Allowed: 1, Current: 4, Desired: 3, Total: 4}, disruption.Counts{Desired: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.deployment("web", 4)
			e.Make(fmt.Sprintf(ofWeb, "guard", tc.numbers))
			e.counts("guard", tc.want)
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "web"}}
			e.Must(e.Client.Delete(e.Ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			e.gone()
			e.counts("guard", tc.left)
		})
	}
}

// TestADeletedNamespaceGoes: Kubernetes deletes its Pods before their workloads and budgets, and no budget refuses that.
func TestADeletedNamespaceGoes(t *testing.T) {
	e := newEnv(t)
	in := &env{e.In(e.NewNamespace(nil))}
	in.deployment("web", 4)
	in.Make(fmt.Sprintf(ofWeb, "guard", "maxUnavailable: 1"))
	in.counts("guard", disruption.Counts{Allowed: 1, Current: 4, Desired: 3, Total: 4})
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}}
	e.Must(e.Client.Delete(e.Ctx, n))
	e.Within(2*time.Minute, "the namespace is gone", func() error { // it is looked at again only now and then
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(n), n); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there (%w): %+v", err, n.Status.Conditions)
		}
		return nil
	})
	if n := (&guard{e}).metric("pod_unavailable_budget", "PodUnavailableBudget_"+in.Namespace+"_guard"); n > 0 {
		t.Errorf("the budget has refused %v deletions of Pods", n)
	}
}
