package uniteddeployment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

const web = `
metadata: {name: web, namespace: ns, uid: web-uid, generation: 1}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {deploymentTemplate: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: one}]}}}}}
  topology: {subsets: [{name: a, maxReplicas: 2}, {name: b}]}
`

// world is a UnitedDeployment and what the API server has of it. Its passes are carried out at once.
type world struct {
	*testing.T
	Snapshot
	uids int
}

func newWorld(t *testing.T, changes ...func(*v1beta1.UnitedDeployment)) *world {
	t.Helper()
	w := &world{T: t, Snapshot: Snapshot{Set: &v1beta1.UnitedDeployment{}, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	if err := yaml.UnmarshalStrict([]byte(web), w.Set); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(w.Set)
	}
	return w
}

// change has the user change the UnitedDeployment.
func (w *world) change(change func(*v1beta1.UnitedDeployment)) {
	w.Set = w.Set.DeepCopy()
	w.Set.Generation++
	change(w.Set)
}

// pass makes a pass, carries it out, and returns what it wrote: the verb, and what it says of it.
func (w *world) pass() []string {
	w.Helper()
	v, err := Classify(w.Snapshot)
	if err != nil {
		w.Fatal(err)
	}
	p := Plan(v)
	var out []string
	var done apply.Outcome
	for _, a := range p.Actions() {
		if a.What != "create a revision" {
			out = append(out, a.What)
		}
		done.Results = append(done.Results, apply.Result{Action: a})
		w.write(a)
	}
	w.Set = w.Set.DeepCopy()
	w.Set.Status = Status(v, p, done)
	return out
}

func (w *world) write(a plan.Action) {
	w.uids++
	switch object := a.Object().DeepCopyObject().(type) {
	case *appsv1.ControllerRevision:
		if a.Verb == plan.Create {
			w.Revisions = append(w.Revisions, object)
		}
	case *corev1.Pod:
		for i := range w.Workloads {
			for j, p := range w.Workloads[i].Pods {
				if p.Name == object.Name {
					w.Workloads[i].Pods[j] = object
				}
			}
		}
	case plan.Object:
		switch a.Verb {
		case plan.Create:
			object.SetUID(types.UID(fmt.Sprint("uid-", w.uids)))
			object.SetGeneration(1)
			w.Workloads = append(w.Workloads, Workload{Object: object})
		case plan.Delete:
			for i := range w.Workloads {
				if w.Workloads[i].Object.GetName() == object.GetName() {
					w.Workloads = append(w.Workloads[:i:i], w.Workloads[i+1:]...)
					break
				}
			}
		default:
			w.replace(object, !cmp.Equal(specOf(a.Before), specOf(object)))
		}
	}
}

func (w *world) replace(object plan.Object, isOther bool) {
	if isOther {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	for i := range w.Workloads {
		if w.Workloads[i].Object.GetName() == object.GetName() {
			w.Workloads[i].Object = object
		}
	}
}

// of returns the workload of a subset, the newest if there are two.
func (w *world) of(subset string) *Workload {
	w.Helper()
	for i := len(w.Workloads) - 1; i >= 0; i-- {
		if w.Workloads[i].Object.GetLabels()[keys.SubsetName] == subset {
			return &w.Workloads[i]
		}
	}
	w.Fatalf("subset %s has no workload", subset)
	return nil
}

// run has the workload of a subset run, with so many Pods ready and so many that no node takes.
func (w *world) run(subset string, ready, pending int) {
	w.Helper()
	at := w.of(subset)
	before := len(at.Pods)
	f := fieldsOf(at.Object)
	for n := range ready + pending {
		name := fmt.Sprintf("%s-%d", at.Object.GetName(), n)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: f.pods.Labels, CreationTimestamp: metav1.NewTime(w.Now)}}
		if n < before {
			p = at.Pods[n].DeepCopy()
		} else {
			at.Pods = append(at.Pods, p)
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.Now)},
		}}
		if n >= ready {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}}
		}
		at.Pods[n] = p
	}
	at.Pods = at.Pods[:ready+pending]
	n := int32(ready + pending)
	switch o := at.Object.DeepCopyObject().(type) {
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{Replicas: n, ReadyReplicas: int32(ready), AvailableReplicas: int32(ready), UpdatedReplicas: n, ObservedGeneration: o.Generation}
		at.Object = o
	case *v1beta1.CloneSet:
		o.Status = v1beta1.CloneSetStatus{Replicas: n, ReadyReplicas: int32(ready), AvailableReplicas: int32(ready), UpdatedReplicas: n, ObservedGeneration: o.Generation}
		at.Object = o
	}
}

func (w *world) wants(what string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.pass()); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (w *world) schedulable(subset string) string {
	for _, s := range w.Set.Status.SubsetStatuses {
		for _, c := range s.Conditions {
			if s.Name == subset {
				return string(c.Status) + " " + c.Reason + ": " + c.Message
			}
		}
	}
	return ""
}

func TestALife(t *testing.T) {
	w := newWorld(t)
	w.wants("at first", "create the Deployment of subset a with 2 replicas", "create the Deployment of subset b with 1 replicas")
	w.run("a", 2, 0)
	w.run("b", 1, 0)
	w.wants("running")
	s := w.Set.Status
	if s.Replicas != 3 || s.ReadyReplicas != 3 || s.UpdatedReadyReplicas != 3 || s.CurrentRevision != s.UpdatedRevision || s.LabelSelector != "app=web" {
		t.Errorf("status %+v", s)
	}
	w.wants("at rest")

	w.change(func(set *v1beta1.UnitedDeployment) { *set.Spec.Replicas = 4 })
	w.wants("scaled", "write the Deployment of subset b with 2 replicas")
	w.run("b", 2, 0)
	w.wants("at rest, scaled")

	edited := w.of("b").Object.DeepCopyObject().(*appsv1.Deployment)
	edited.Generation++
	edited.Spec.Template.Spec.Containers[0].Image = "by hand"
	w.of("b").Object = edited
	w.wants("edited by hand", "write the Deployment of subset b with 2 replicas")
	w.run("b", 2, 0)
	w.wants("repaired")

	paused := w.of("b").Object.DeepCopyObject().(*appsv1.Deployment)
	paused.Generation++
	paused.Spec.Paused = true
	w.of("b").Object = paused
	w.wants("a field that nobody speaks of")

	w.change(func(set *v1beta1.UnitedDeployment) {
		set.Spec.Topology.Subsets[1].Patch.Raw = []byte(`{"spec":{"hostname":"h"}}`)
	})
	w.wants("patched", "write the Deployment of subset b with 2 replicas")
	if got := w.of("b").Object.GetAnnotations()[keys.SubsetPatch]; got != `{"spec":{"hostname":"h"}}` {
		t.Errorf("annotation %q", got)
	}

	w.change(func(set *v1beta1.UnitedDeployment) { set.Spec.Topology.Subsets = set.Spec.Topology.Subsets[1:] })
	w.wants("a subset less", "write the Deployment of subset b with 4 replicas", "delete")
}

// TestTheKindSwitches: the new workload serves before the old one goes.
func TestTheKindSwitches(t *testing.T) {
	cloneSets := func(set *v1beta1.UnitedDeployment) {
		given := set.Spec.Template.DeploymentTemplate
		set.Spec.Template = v1beta1.SubsetTemplate{CloneSetTemplate: &v1beta1.CloneSetTemplateSpec{
			ObjectMeta: given.ObjectMeta,
			Spec:       v1beta1.CloneSetSpec{CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{Template: given.Spec.Template}},
		}}
	}
	one := func(set *v1beta1.UnitedDeployment) { set.Spec.Topology.Subsets = set.Spec.Topology.Subsets[1:] }
	w := newWorld(t, one)
	w.pass()
	w.run("b", 3, 0)
	w.pass()
	w.change(cloneSets)
	w.wants("another kind", "create the CloneSet of subset b with 3 replicas")
	w.run("b", 2, 0)
	w.wants("not all ready")
	w.run("b", 3, 0)
	w.wants("all ready", "delete")
	w.wants("at rest")

	w = newWorld(t, one)
	w.pass()
	w.change(func(set *v1beta1.UnitedDeployment) {
		cloneSets(set)
		set.Annotations = map[string]string{keys.TemplateSwitch: keys.TemplateSwitchRecreate}
	})
	w.wants("recreated", "create the CloneSet of subset b with 3 replicas", "delete")
}

func adaptive(reserve bool) func(*v1beta1.UnitedDeployment) {
	return func(set *v1beta1.UnitedDeployment) {
		set.Spec.Topology.ScheduleStrategy = v1beta1.UnitedDeploymentScheduleStrategy{
			Type: v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType, Adaptive: &v1beta1.AdaptiveUnitedDeploymentStrategy{ReserveUnschedulablePods: reserve},
		}
	}
}

// TestAdaptive: a has room for no Pod for a while.
func TestAdaptive(t *testing.T) {
	w := newWorld(t, adaptive(false))
	w.pass()
	w.run("a", 1, 1)
	w.run("b", 1, 0)
	w.wants("too early")
	w.Now = w.Now.Add(31 * time.Second)
	w.wants("a Pod is stuck", "write the Deployment of subset a with 1 replicas", "write the Deployment of subset b with 2 replicas")
	if got := w.schedulable("a"); got != "False reschedule: timeout pending pods found" {
		t.Errorf("condition %q", got)
	}
	w.run("a", 1, 0)
	w.run("b", 2, 0)
	w.wants("at rest")
	w.Now = w.Now.Add(300 * time.Second)
	w.wants("tried again, but ready Pods stay")
	if got := w.schedulable("a"); got != "True recover: unschedulable subset recovered after 300 seconds" {
		t.Errorf("condition %q", got)
	}
	w.change(func(set *v1beta1.UnitedDeployment) { *set.Spec.Replicas = 4 })
	w.wants("scaled", "write the Deployment of subset a with 2 replicas")
}

// TestReservation: others stand in for Pods that wait for a node, until these are ready for a while.
func TestReservation(t *testing.T) {
	w := newWorld(t, adaptive(true), func(set *v1beta1.UnitedDeployment) {
		*set.Spec.Replicas = 2
		set.Spec.Topology.Subsets[0].MaxReplicas = nil
	})
	w.wants("at first", "create the Deployment of subset a with 2 replicas", "create the Deployment of subset b with 0 replicas")
	w.run("a", 0, 2)
	w.run("b", 0, 0)
	w.wants("waiting", "label it reserved: false", "label it reserved: false")
	w.Now = w.Now.Add(31 * time.Second)
	w.wants("stuck", "write the Deployment of subset a with 2 replicas", "label it reserved: true", "label it reserved: true",
		"write the Deployment of subset b with 2 replicas")
	w.run("b", 2, 0)
	w.wants("substituted", "label it reserved: false", "label it reserved: false")
	if s := w.Set.Status; s.Replicas != 2 || s.ReservedPods != 2 || s.LabelSelector != "app=web,apps.kruise.io/united-deployment-reserved-pod=false" {
		t.Errorf("status %+v", s)
	}
	w.run("a", 2, 0)
	w.pass()
	w.wants("ready, but not for long")
	w.Now = w.Now.Add(301 * time.Second)
	w.wants("ready for long", "write the Deployment of subset a with 2 replicas", "label it reserved: false", "label it reserved: false",
		"write the Deployment of subset b with 0 replicas")
	if got := w.schedulable("a"); got != "True reschedule: no reserved pods" {
		t.Errorf("condition %q", got)
	}
}

// TestSpecifiedReplicasThatDoNotAddUp: an autoscaler may have asked for less than the subsets specify.
func TestSpecifiedReplicasThatDoNotAddUp(t *testing.T) {
	w := newWorld(t, func(set *v1beta1.UnitedDeployment) {
		if err := yaml.Unmarshal([]byte("[{name: a, replicas: 4}, {name: b, replicas: 4}]"), &set.Spec.Topology.Subsets); err != nil {
			t.Fatal(err)
		}
	})
	w.wants("divided", "create the Deployment of subset a with 2 replicas", "create the Deployment of subset b with 1 replicas")
	var told string
	for _, c := range w.Set.Status.Conditions {
		if c.Type == v1beta1.UnitedDeploymentReplicasAdjusted {
			told = string(c.Status) + " " + c.Message
		}
	}
	if !strings.HasPrefix(told, "True the subsets specify 8 Pods and 3 are to be divided") {
		t.Errorf("condition %q", told)
	}
}
