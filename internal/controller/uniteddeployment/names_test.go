package uniteddeployment

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestNames: a name is repeated until somebody else has it, and is one that every kind can have.
func TestNames(t *testing.T) {
	w := newWorld(t)
	name := func() string {
		v, err := Classify(w.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		return v.nameFor(v.subsets[0])
	}
	first := name()
	if !strings.HasPrefix(first, "web-a-") || name() != first {
		t.Errorf("named %s, then %s", first, name())
	}
	w.Taken = []string{first}
	if second := name(); second == first || !strings.HasPrefix(second, "web-a-") {
		t.Errorf("%s is taken, and named %s", first, second)
	}
	w.Set.Name = strings.Repeat("long.", 20)
	if long := name(); len(long) > longestName || strings.Contains(long, ".") {
		t.Errorf("named %s", long)
	}
}

// TestAStatefulSetThatWaitsForABrokenPod: only the update can make the Pod ready, and the StatefulSet updates it once it is ready.
func TestAStatefulSetThatWaitsForABrokenPod(t *testing.T) {
	w := newWorld(t, func(set *v1beta1.UnitedDeployment) {
		given := set.Spec.Template.DeploymentTemplate
		set.Spec.Template = v1beta1.SubsetTemplate{StatefulSetTemplate: &v1beta1.StatefulSetTemplateSpec{
			ObjectMeta: given.ObjectMeta, Spec: appsv1.StatefulSetSpec{Template: given.Spec.Template},
		}}
		set.Spec.Topology.Subsets = set.Spec.Topology.Subsets[1:]
		set.Spec.UpdateStrategy.ManualUpdate = &v1beta1.ManualUpdate{Partitions: map[string]int32{"b": 1}}
	})
	w.pass()
	at := w.of("b")
	native := at.Object.DeepCopyObject().(*appsv1.StatefulSet)
	native.Status = appsv1.StatefulSetStatus{ObservedGeneration: native.Generation, UpdateRevision: "new", Replicas: 3}
	at.Object = native
	for n, label := range []string{"old", "old", "new"} { // none is ready
		at.Pods = append(at.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", native.Name, n), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: label},
		}})
	}
	w.wants("only the second: the first is below the partition, and the third new", "delete")
}

// TestRollback: the revision of an earlier template is used again.
func TestRollback(t *testing.T) {
	w := newWorld(t)
	image := func(name string) func(*v1beta1.UnitedDeployment) {
		return func(set *v1beta1.UnitedDeployment) {
			set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image = name
		}
	}
	w.pass()
	first := w.Set.Status.UpdatedRevision
	w.change(image("two"))
	w.pass()
	if second := w.Set.Status.UpdatedRevision; second == first || len(w.Revisions) != 2 {
		t.Errorf("revision %s, %d stored", second, len(w.Revisions))
	}
	w.change(image("one"))
	w.pass()
	if third := w.Set.Status.UpdatedRevision; third != first || len(w.Revisions) != 2 {
		t.Errorf("revision %s instead of %s, %d stored", third, first, len(w.Revisions))
	}
}
