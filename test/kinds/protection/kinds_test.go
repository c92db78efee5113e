package protection

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// custom installs a kind of workload that only this test knows, with or without a scale.
func (e *env) custom(kind, plural, subresources string) {
	e.Helper()
	crd := e.Manifest(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s, singular: x%[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {%[3]s}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {size: {type: integer}, selector: {type: string}}}`, kind, plural, subresources))
	crd.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, crd))
	e.CleanUp(crd)
	e.Eventually("the kind is served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("example.com/v1")
		list.SetKind(kind + "List")
		return e.Client.List(e.Ctx, list, client.InNamespace(e.Namespace))
	})
}

// podsOf makes Pods that have a label, and an owner where there is one.
func (e *env) podsOf(owner *unstructured.Unstructured, app string, number int) {
	e.Helper()
	for i := range number {
		p := e.Manifest(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-%[2]d, labels: {app: %[1]s}}
spec: {containers: [{name: app, image: "nginx:1"}], terminationGracePeriodSeconds: 0}`, app, i))
		if owner != nil {
			if err := unstructured.SetNestedSlice(p.Object, []any{map[string]any{
				"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()), "controller": true,
			}}, "metadata", "ownerReferences"); err != nil {
				e.Fatal(err)
			}
		}
		e.Must(e.Client.Create(e.Ctx, p))
	}
}

const scalable = "status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}"

// TestAKindWithAScale is counted by it, whether it controls its Pods or only selects them.
func TestAKindWithAScale(t *testing.T) {
	e := newEnv(t)
	e.custom("Herd", "herds", scalable)
	owner := e.Make("{apiVersion: example.com/v1, kind: Herd, metadata: {name: owner}, spec: {size: 5}}")
	e.podsOf(owner, "owned", 4)
	picker := e.Make("{apiVersion: example.com/v1, kind: Herd, metadata: {name: picker}, spec: {size: 2}}")
	picker.Object["status"] = map[string]any{"size": int64(3), "selector": "app=picked"}
	e.Must(e.Client.Status().Update(e.Ctx, picker))
	e.podsOf(nil, "picked", 3)
	const of = "{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: %[1]s}, spec: {targetRef: {apiVersion: example.com/v1, kind: Herd, name: %[1]s}, maxUnavailable: %[2]s}}"
	e.Make(fmt.Sprintf(of, "owner", "40%"))
	e.Make(fmt.Sprintf(of, "picker", "1"))
	e.Make(fmt.Sprintf(of, "nobody", "1"))
	e.counts("owner", disruption.Counts{Allowed: 1, Current: 4, Desired: 3, Total: 5})
	e.counts("picker", disruption.Counts{Allowed: 2, Current: 3, Desired: 1, Total: 2})
	e.counts("nobody", disruption.Counts{})
	if c := meta.FindStatusCondition(e.budget("picker").Status.Conditions, v1beta1.ConditionSurplusPods); c == nil || c.Message != "there are 3 Pods where there should be 2" {
		t.Errorf("the condition is %+v", c)
	}
	// Fewer are wanted, and whoever judges a deletion knows at once: of four Pods three may go.
	before := owner.DeepCopy()
	e.Must(unstructured.SetNestedField(owner.Object, int64(3), "spec", "size"))
	e.Must(e.Client.Patch(e.Ctx, owner, client.MergeFrom(before)))
	for i := range 3 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: fmt.Sprintf("owned-%d", i)}}
		if err := e.Client.Delete(e.Ctx, p); err != nil {
			t.Errorf("deletion %d after the scale: %v", i, err)
		}
	}
}

// TestAKindWithoutAScale: its Pods are counted, and a condition says so.
func TestAKindWithoutAScale(t *testing.T) {
	e := newEnv(t)
	e.custom("Flock", "flocks", "status: {}")
	owner := e.Make("{apiVersion: example.com/v1, kind: Flock, metadata: {name: owner}, spec: {size: 5}}")
	e.podsOf(owner, "owned", 3)
	e.Make("{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: guard}, spec: {selector: {matchLabels: {app: owned}}, maxUnavailable: 1}}")
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 3, Desired: 2, Total: 3})
	if c := meta.FindStatusCondition(e.budget("guard").Status.Conditions, v1beta1.ConditionTotalReplicasUnknown); c == nil {
		t.Errorf("there is no condition: %+v", e.budget("guard").Status)
	}
}

// TestASelectorOverSeveralWorkloads: of two ReplicaSets of one Deployment the Deployment counts once.
func TestASelectorOverSeveralWorkloads(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 3)
	e.Make(`
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: batch}
spec:
  replicas: 2
  selector: {matchLabels: {app: web, by: cloneset}}
  template:
    metadata: {labels: {app: web, by: cloneset}}
    spec: {containers: [{name: app, image: "nginx:1"}], terminationGracePeriodSeconds: 0}`)
	e.Make("{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: guard}, spec: {selector: {matchLabels: {app: web}}, minAvailable: 50%}}")
	e.counts("guard", disruption.Counts{Allowed: 2, Current: 5, Desired: 3, Total: 5})
	// A second ReplicaSet, which can't become ready.
	d := &appsv1.Deployment{}
	e.Read("web", d)
	before := d.DeepCopy()
	d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "where"}
	e.Must(e.Client.Patch(e.Ctx, d, client.MergeFrom(before)))
	e.Eventually("there is a Pod more", func() error {
		if pods := e.Pods(); len(pods) != 6 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	e.Eventually("the surplus is told of, and the total stays", func() error {
		s := e.budget("guard").Status
		if s.TotalReplicas != 5 || s.CurrentAvailable != 5 || !meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionSurplusPods) {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

// TestTheOlderVersion says by annotations what the newer one has fields for.
func TestTheOlderVersion(t *testing.T) {
	e := newEnv(t)
	e.Make(`
apiVersion: policy.kruise.io/v1alpha1
kind: PodUnavailableBudget
metadata:
  name: guard
  annotations:
    kruise.io/pub-protect-operations: EVICT, UPDATE
    pub.kruise.io/protect-total-replicas: "15"
    pub.kruise.io/ignored-pod-selector: '{"matchLabels":{"tier":"test"}}'
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: 20%`)
	b := e.budget("guard")
	if fmt.Sprint(b.Spec.ProtectOperations) != "[EVICT UPDATE]" || *b.Spec.ProtectTotalReplicas != 15 || b.Spec.IgnoredPodSelector.MatchLabels["tier"] != "test" {
		t.Errorf("the fields are %+v", b.Spec)
	}
	e.counts("guard", disruption.Counts{Desired: 12, Total: 15})
	// A user of the older version changes something else.
	older := &v1alpha1.PodUnavailableBudget{}
	scene.Edit(e.Env, "guard", older, func(b *v1alpha1.PodUnavailableBudget) { b.Labels = map[string]string{"note": "new"} })
	if got := older.Annotations["kruise.io/pub-protect-operations"]; got != "EVICT,UPDATE" {
		t.Errorf("the annotation is %q", got)
	}
	now := e.budget("guard")
	if diff := cmp.Diff(b.Spec, now.Spec); diff != "" {
		t.Errorf("the fields (-before +after):\n%s", diff)
	}
	if now.Generation != b.Generation {
		t.Errorf("the spec was written anew: generation %d, was %d", now.Generation, b.Generation)
	}
}

// TestWhatIsRefused asks the API server, with all that stands before it.
func TestWhatIsRefused(t *testing.T) {
	e := newEnv(t)
	e.Make("{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: there}, spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}}")
	for name, tc := range map[string]struct{ version, annotations, spec string }{
		"a selector and a target":     {spec: "selector: {matchLabels: {a: b}}, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxUnavailable: 1"},
		"neither":                     {spec: "maxUnavailable: 1"},
		"two numbers":                 {spec: "selector: {matchLabels: {a: b}}, maxUnavailable: 1, minAvailable: 1"},
		"too many percent":            {spec: "selector: {matchLabels: {a: b}}, maxUnavailable: 101%"},
		"an empty selector":           {spec: "selector: {}, maxUnavailable: 1"},
		"an unknown operation":        {spec: "selector: {matchLabels: {a: b}}, maxUnavailable: 1, protectOperations: [REBOOT]"},
		"an unknown operation, older": {version: "v1alpha1", annotations: "kruise.io/pub-protect-operations: REBOOT", spec: "selector: {matchLabels: {a: b}}, maxUnavailable: 1"},
		"a total that is no number":   {version: "v1alpha1", annotations: "pub.kruise.io/protect-total-replicas: many", spec: "selector: {matchLabels: {a: b}}, maxUnavailable: 1"},
		"the same Pods":               {spec: "selector: {matchExpressions: [{key: app, operator: In, values: [web, shop]}]}, maxUnavailable: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			version := tc.version
			if version == "" {
				version = "v1beta1"
			}
			o := e.Manifest(fmt.Sprintf("{apiVersion: policy.kruise.io/%s, kind: PodUnavailableBudget, metadata: {name: refused, annotations: {%s}}, spec: {%s}}", version, tc.annotations, tc.spec))
			if err := e.Client.Create(e.Ctx, o, client.DryRunAll); err == nil {
				t.Error("it was accepted")
			}
		})
	}
	err := scene.TryEdit(e.Env, "there", &v1beta1.PodUnavailableBudget{}, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.Selector.MatchLabels["more"] = "labels"
	}, client.DryRunAll)
	if err == nil {
		t.Error("the selector could be changed")
	}
}

// TestExamples: the API server takes them, and knows their fields.
func TestExamples(t *testing.T) { newEnv(t).AcceptsExamples("pub-*.yaml") }

// TestAnExampleGuards what it says.
func TestAnExampleGuards(t *testing.T) {
	e := newEnv(t)
	e.deployment("web", 4)
	e.Make(e.Examples("pub-deployment.yaml")["pub-deployment.yaml"])
	e.Eventually("it allows one Pod to go", func() error {
		var list v1beta1.PodUnavailableBudgetList
		e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		if len(list.Items) != 1 || list.Items[0].Status.UnavailableAllowed != 1 {
			return errors.New("it does not")
		}
		return nil
	})
}
