package uniteddeployment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

const deployment, cloneSet, native, advanced = "deploymentTemplate", "cloneSetTemplate", "statefulSetTemplate", "advancedStatefulSetTemplate"

func TestExamples(t *testing.T) {
	e := newEnv(t)
	e.AcceptsExamples("uniteddeployment*.yaml")
}

// TestSharesByNumberPercentageAndRest is scenario 1: 6 Pods, of which a specifies 1 and b 50%.
func TestSharesByNumberPercentageAndRest(t *testing.T) {
	e := newEnv(t)
	e.create(6, template(native, "nginx:1.27"), "topology: {subsets: [{name: a, replicas: 1}, {name: b, replicas: 50%}, {name: c}]}")
	e.settles("a=1 b=3 c=2")
	for subset, w := range e.workloads(&appsv1.StatefulSetList{}) {
		labels := w.GetLabels()
		if !strings.HasPrefix(w.GetName(), "web-"+subset+"-") || !metav1.IsControlledBy(w, e.set()) || labels["app"] != "web" || labels[keys.SubsetRevision] == "" {
			t.Errorf("subset %s has %s with labels %v and owners %v", subset, w.GetName(), labels, w.GetOwnerReferences())
		}
	}
	e.Eventually("it is updated", func() error {
		if c := e.condition(v1beta1.UnitedDeploymentUpdated); c != "True UnitedDeploymentRevisionUpdated" {
			return errors.New(c)
		}
		return nil
	})
}

// TestASubsetIsRemoved is scenario 2: 10 Pods over three equal subsets, then over two.
func TestASubsetIsRemoved(t *testing.T) {
	e := newEnv(t)
	e.create(10, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}, {name: c}]}")
	e.settles("a=3 b=3 c=4")
	e.patch("spec: {topology: {subsets: [{name: a}, {name: b}]}}")
	e.settles("a=5 b=5")
	e.Eventually("subset c is gone", func() error {
		if w := e.workloads(&appsv1.DeploymentList{}); w["c"] != nil || len(e.set().Status.SubsetStatuses) != 2 {
			return fmt.Errorf("it is there: %v, %+v", w["c"], e.set().Status.SubsetStatuses)
		}
		return nil
	})
}

// TestASubsetOfEachKindIsRemoved, whichever kind its workload is of.
func TestASubsetOfEachKindIsRemoved(t *testing.T) {
	for kind, list := range map[string]client.ObjectList{
		cloneSet: &v1beta1.CloneSetList{}, native: &appsv1.StatefulSetList{}, advanced: &v1beta1.StatefulSetList{},
	} {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			e.create(2, template(kind, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}]}")
			e.settles("a=1 b=1")
			e.patch("spec: {topology: {subsets: [{name: a}]}}")
			e.settles("a=2")
			e.Eventually("subset b is gone", func() error {
				if w := e.workloads(list); w["b"] != nil || w["a"] == nil {
					return fmt.Errorf("workloads are %v", w)
				}
				return nil
			})
		})
	}
}

// TestLimits is scenario 3: 5, 8 and 3 Pods within limits.
func TestLimits(t *testing.T) {
	e := newEnv(t)
	e.create(5, template(cloneSet, "nginx:1.27"), "topology: {subsets: [{name: a, minReplicas: 2, maxReplicas: 4}, {name: b, minReplicas: 2}]}")
	e.settles("a=3 b=2")
	e.patch("spec: {replicas: 8}")
	e.settles("a=4 b=4")
	e.patch("spec: {replicas: 3}")
	e.settles("a=2 b=1")
}

// TestTheKindOfTheTemplateSwitches is scenario 4: never fewer ready Pods than before.
func TestTheKindOfTheTemplateSwitches(t *testing.T) {
	e := newEnv(t)
	e.create(4, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}]}")
	e.settles("a=2 b=2")
	e.patch("spec: {template: {deploymentTemplate: null, cloneSetTemplate: " + strings.TrimSuffix(strings.TrimPrefix(template(cloneSet, "nginx:1.28"), "{cloneSetTemplate: "), "}") + "}}")
	e.Eventually("the Deployments are gone", func() error {
		ready := 0
		for _, p := range e.Pods() {
			if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				for _, c := range p.Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
						ready++
					}
				}
			}
		}
		if ready < 4 {
			t.Errorf("only %d Pods are ready", ready)
		}
		if left := e.workloads(&appsv1.DeploymentList{}); len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
	e.settles("a=2 b=2")
}

// TestPartitions is scenarios 5 and 6: a rollout as far as the partitions, then to its end, then back to the revision of before.
func TestPartitions(t *testing.T) {
	for _, kind := range []string{cloneSet, native, advanced} {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			const topology = "topology: {subsets: [{name: a, replicas: 4}, {name: b, replicas: 2}, {name: c}]}"
			e.create(8, template(kind, "nginx:1.27"), topology+"\n  updateStrategy: {manualUpdate: {partitions: {a: 2, b: 1, c: 1}}}")
			e.settles("a=4 b=2 c=2")
			first := e.set().Status.CurrentRevision
			e.patch("spec: {template: " + template(kind, "nginx:1.28") + "}")
			e.Eventually("half are updated", func() error {
				s := e.set().Status
				if got := e.ready(runs("nginx:1.28")); got != "a=2 b=1 c=1" || s.UpdatedReadyReplicas != 4 || s.UpdatedReplicas != 4 {
					return fmt.Errorf("updated: %s, status %+v", got, s)
				}
				return nil
			})
			if s := e.set().Status; s.CurrentRevision != first || s.UpdatedRevision == first {
				t.Errorf("revisions %s and %s, at first %s", s.CurrentRevision, s.UpdatedRevision, first)
			}
			e.sameNumbersInBothVersions()
			e.patch("spec: {updateStrategy: {manualUpdate: {partitions: {a: 0, b: 0, c: 0}}}}")
			e.Eventually("all are updated", func() error {
				s := e.set().Status
				if got := e.ready(runs("nginx:1.28")); got != "a=4 b=2 c=2" || s.CurrentRevision != s.UpdatedRevision {
					return fmt.Errorf("updated: %s, status %+v", got, s)
				}
				return nil
			})
			e.patch("spec: {template: " + template(kind, "nginx:1.27") + "}")
			e.Eventually("all are back", func() error {
				s := e.set().Status
				if got := e.ready(runs("nginx:1.27")); got != "a=4 b=2 c=2" || s.CurrentRevision != first || s.UpdatedRevision != first {
					return fmt.Errorf("back: %s, status %+v", got, s)
				}
				return nil
			})
		})
	}
}

// sameNumbersInBothVersions is scenario 14.
func (e *env) sameNumbersInBothVersions() {
	e.Helper()
	older, newer := &v1alpha1.UnitedDeployment{}, &v1beta1.UnitedDeployment{}
	e.Eventually("both are of one moment", func() error {
		*older = v1alpha1.UnitedDeployment{}
		e.Read("web", older)
		if newer = e.set(); newer.ResourceVersion != older.ResourceVersion {
			return errors.New("it was written meanwhile")
		}
		return nil
	})
	replicas, partitions := map[string]int32{}, map[string]int32{}
	for _, s := range newer.Status.SubsetStatuses {
		replicas[s.Name], partitions[s.Name] = s.Replicas, s.Partition
	}
	want := v1alpha1.UpdateStatus{UpdatedRevision: newer.Status.UpdatedRevision, CurrentPartitions: partitions}
	if diff := cmp.Diff(want, *older.Status.UpdateStatus) + cmp.Diff(replicas, older.Status.SubsetReplicas); diff != "" {
		e.Errorf("(-v1beta1 +v1alpha1):\n%s", diff)
	}
}

// adaptiveTo is a topology whose subset b selects nodes that there are none of yet.
func (e *env) adaptiveTo(reserve bool) string {
	return fmt.Sprintf(`topology:
    scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 3, unschedulableDuration: 8, reserveUnschedulablePods: %t}}
    subsets:
    - {name: a, maxReplicas: 2}
    - {name: b, maxReplicas: 2, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [%s]}]}}
    - {name: c}`, reserve, e.Namespace)
}

func (e *env) schedulable(subset string) string {
	for _, s := range e.set().Status.SubsetStatuses {
		if s.Name == subset && len(s.Conditions) > 0 {
			return string(s.Conditions[0].Status) + " " + s.Conditions[0].Reason
		}
	}
	return ""
}

// TestAdaptive is scenario 7: b has no nodes, c takes its Pods, and b is tried again after a while.
func TestAdaptive(t *testing.T) {
	e := newEnv(t)
	e.create(3, template(deployment, "nginx:1.27"), e.adaptiveTo(false))
	e.Eventually("c stands in for b", func() error {
		if got := e.ready(all); got != "a=2 c=1" || e.schedulable("b") != "False reschedule" {
			return fmt.Errorf("%s, b is %q", got, e.schedulable("b"))
		}
		return nil
	})
	e.Eventually("b is tried again", func() error {
		if got := e.schedulable("b"); got != "True recover" {
			return errors.New(got)
		}
		return nil
	})
	e.settles("a=2 c=1")
}

// TestReservation is scenario 8: Pods of b wait for nodes, c runs substitutes, and these go once b has nodes and its Pods are ready for a while.
func TestReservation(t *testing.T) {
	e := newEnv(t)
	e.create(4, template(deployment, "nginx:1.27"), e.adaptiveTo(true))
	visible := func() string {
		e.Helper()
		selector, err := metav1.ParseToLabelSelector(e.set().Status.LabelSelector)
		e.Must(err)
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		e.Must(err)
		var pods corev1.PodList
		e.Must(e.Client.List(e.Ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabelsSelector{Selector: parsed}))
		s := e.set().Status
		return fmt.Sprintf("%s, %d visible, %d reserved, %d in all", e.ready(all), len(pods.Items), s.ReservedPods, s.Replicas)
	}
	e.Eventually("c runs substitutes", func() error {
		if got := visible(); got != "a=2 c=2, 4 visible, 2 reserved, 4 in all" {
			return errors.New(got)
		}
		return nil
	})
	// Nobody else has Pods of this namespace's zone.
	e.EditNode("sim-1", func(node *corev1.Node) { node.Labels["zone"] = e.Namespace })
	e.Eventually("the substitutes are gone", func() error {
		if got := visible(); got != "a=2 b=2, 4 visible, 0 reserved, 4 in all" || e.schedulable("b") != "True reschedule" {
			return errors.New(got)
		}
		return nil
	})
}

// TestEditedByHand is scenario 9.
func TestEditedByHand(t *testing.T) {
	e := newEnv(t)
	e.create(4, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}]}")
	e.settles("a=2 b=2")
	e.patchOf(e.workloads(&appsv1.DeploymentList{})["a"], "spec: {replicas: 5, template: {spec: {containers: [{name: app, image: 'nginx:0'}]}}}")
	e.Eventually("it is changed back", func() error {
		spec := e.workloads(&appsv1.DeploymentList{})["a"].(*appsv1.Deployment).Spec
		if *spec.Replicas != 2 || spec.Template.Spec.Containers[0].Image != "nginx:1.27" {
			return fmt.Errorf("%d replicas of %s", *spec.Replicas, spec.Template.Spec.Containers[0].Image)
		}
		return nil
	})
	e.settles("a=2 b=2")
	e.isQuiet()
}

// isQuiet checks that nothing is written at rest.
func (e *env) isQuiet() {
	e.Helper()
	versions := func() string {
		out := e.set().ResourceVersion
		for _, w := range e.workloads(&appsv1.DeploymentList{}) {
			out += " " + fmt.Sprint(w.GetGeneration(), w.GetAnnotations()[keys.SubsetApplied])
		}
		return fmt.Sprint(len(out), e.set().ResourceVersion)
	}
	e.Eventually("the status has come to rest", func() error {
		before := versions()
		time.Sleep(time.Second)
		if now := versions(); now != before {
			return fmt.Errorf("%s, then %s", before, now)
		}
		return nil
	})
	before := versions()
	e.Always(3*time.Second, "nothing is written", func() error {
		if now := versions(); now != before {
			return fmt.Errorf("%s, then %s", before, now)
		}
		return nil
	})
}

// TestForeignWorkloads is scenario 10: Deployments of others with the same labels, here and in another namespace.
func TestForeignWorkloads(t *testing.T) {
	e := newEnv(t)
	labels := map[string]string{"app": "web", keys.SubsetName: "a"}
	zero := int32(0)
	foreign := func(namespace string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Namespace: namespace, Labels: labels}}
		d.Spec.Replicas, d.Spec.Selector = &zero, &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1.27"}}
		e.Must(e.Client.Create(e.Ctx, d))
		return d
	}
	here, there := foreign(e.Namespace), foreign(e.NewNamespace(nil))
	e.create(2, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a}]}")
	e.settles("a=2")
	for _, d := range []*appsv1.Deployment{here, there} {
		now := &appsv1.Deployment{}
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(d), now))
		if now.Generation != d.Generation || len(now.OwnerReferences) > 0 || !cmp.Equal(now.Labels, labels) {
			t.Errorf("%s/%s has changed: %+v", d.Namespace, d.Name, now.ObjectMeta)
		}
	}
	e.Eventually("its subset is there", func() error {
		if c := e.condition(v1beta1.UnitedDeploymentSubsetProvisioned); c != "True " {
			return fmt.Errorf("condition %q", c)
		}
		return nil
	})
}

// TestASelectorOfExpressions is scenario 11.
func TestASelectorOfExpressions(t *testing.T) {
	e := newEnv(t)
	e.Make(`
apiVersion: apps.kruise.io/v1alpha1
kind: UnitedDeployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}
  template: ` + template(cloneSet, "nginx:1.27") + `
  topology: {subsets: [{name: a}, {name: b}]}
`)
	e.settles("a=1 b=1")
}

// TestAPatchOfOneSubset is scenario 12: only the Pods of b are replaced.
func TestAPatchOfOneSubset(t *testing.T) {
	e := newEnv(t)
	e.create(4, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a}, {name: b}]}")
	e.settles("a=2 b=2")
	before := map[string]bool{}
	for _, p := range e.Pods() {
		before[p.Name] = true
	}
	e.patch("spec: {topology: {subsets: [{name: a}, {name: b, patch: {spec: {containers: [{name: app, env: [{name: TIER, value: b}]}]}}}]}}")
	e.Eventually("b has the variable", func() error {
		kept, patched := e.ready(func(p *corev1.Pod) bool { return before[p.Name] }), e.ready(func(p *corev1.Pod) bool { return len(p.Spec.Containers[0].Env) == 1 })
		if kept != "a=2" || patched != "b=2" {
			return fmt.Errorf("kept %s, patched %s", kept, patched)
		}
		return nil
	})
	if got := e.workloads(&appsv1.DeploymentList{})["b"].GetAnnotations()[keys.SubsetPatch]; !strings.Contains(got, "TIER") {
		t.Errorf("annotation %q", got)
	}
}

// TestScaledBelowWhatSubsetsSpecify is scenario 13.
func TestScaledBelowWhatSubsetsSpecify(t *testing.T) {
	e := newEnv(t)
	e.create(6, template(deployment, "nginx:1.27"), "topology: {subsets: [{name: a, replicas: 3}, {name: b, replicas: 2}, {name: c}]}")
	e.settles("a=3 b=2 c=1")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	e.Must(e.Client.SubResource("scale").Update(e.Ctx, e.set(), client.WithSubResourceBody(scale)))
	e.settles("a=2 b=1")
	e.Eventually("it says that numbers do not fit", func() error {
		if c := e.condition(v1beta1.UnitedDeploymentReplicasAdjusted); !strings.HasPrefix(c, "True ") {
			return fmt.Errorf("condition %q", c)
		}
		return nil
	})
	e.patch("spec: {template: " + template(deployment, "nginx:1.28") + "}")
	e.Eventually("the rollout goes on", func() error {
		if got := e.ready(runs("nginx:1.28")); got != "a=2 b=1" {
			return errors.New(got)
		}
		return nil
	})
}
