package deployment

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// released returns a Deployment in the middle of a release of app:v2.
func released() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	d.Labels = map[string]string{keys.WorkloadType: "deployment", keys.AdvancedDeployment: "true", keys.StableRevision: "old", "team": "a"}
	d.Spec.Replicas, d.Spec.Paused = ptr.To[int32](4), true
	d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v2"}}
	d.Annotations = map[string]string{
		keys.InProgressing: `{"rolloutName":"demo"}`, keys.ControlInfo: `{"name":"demo"}`, "note": "kept",
		keys.DeploymentStrategy: replicasets.Strategy{
			Partition: intstr.FromInt32(2), Revision: replicasets.Hash(&d.Spec.Template, nil),
		}.String(),
	}
	return d
}

// TestAnOrphanIsGivenBack in one write, which takes everything of the release off.
func TestAnOrphanIsGivenBack(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"ours": func(*appsv1.Deployment) {},
		"one that the original began": func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := released()
			change(d)
			p := Plan(Classify(Snapshot{Deployment: d, Orphaned: true}))
			if len(p.Stages) != 1 || len(p.Stages[0]) != 1 || len(p.Stages[0][0]) != 1 {
				t.Fatalf("not one write: %s", p)
			}
			after := p.Stages[0][0][0].After.(*appsv1.Deployment)
			if after.Spec.Paused || after.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
				t.Errorf("paused %t, strategy %s", after.Spec.Paused, after.Spec.Strategy.Type)
			}
			if len(after.Labels) != 1 || len(after.Annotations) != 1 {
				t.Errorf("labels %v, annotations %v, want one of each", after.Labels, after.Annotations)
			}
		})
	}
}

// TestABatchIsOfOneTemplate: where the template is changed and no webhook sees it, no Pod of it is made by the number of the one before.
func TestABatchIsOfOneTemplate(t *testing.T) {
	d := released()
	if p := Plan(Classify(Snapshot{Deployment: d})); !strings.Contains(p.String(), "make the new ReplicaSet") {
		t.Errorf("the template of the batch: %s", p)
	}
	d.Spec.Template.Spec.Containers[0].Image = "app:v3"
	if p := Plan(Classify(Snapshot{Deployment: d})); len(p.Stages) > 0 {
		t.Errorf("another template: %s", p)
	}
}

// TestNoPodsMoveUntilTrafficIsBack, and no ReplicaSet is made of the template that waits for it.
func TestNoPodsMoveUntilTrafficIsBack(t *testing.T) {
	d := released()
	d.Spec.Template.Annotations = map[string]string{keys.TrafficFirst: "true"}
	d.Annotations[keys.DeploymentStrategy] = replicasets.Strategy{Partition: intstr.FromInt32(2)}.String()
	if p := Plan(Classify(Snapshot{Deployment: d})); len(p.Stages) > 0 || !strings.Contains(p.String(), "until traffic is led back") {
		t.Errorf("%s", p)
	}
}

// TestTheNewReplicaSetComesWithItsFirstPods: none is made before the first step, and that of the first step needs no further write.
func TestTheNewReplicaSetComesWithItsFirstPods(t *testing.T) {
	d := released()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	surge := func(n int) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt(n)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	}
	old := d.DeepCopy()
	old.Spec.Template.Spec.Containers[0].Image = "app:v1"
	before := replicasets.Make(old, nil, replicasets.Limits{Replicas: 4})
	*before.Spec.Replicas = 4
	before.Status = appsv1.ReplicaSetStatus{Replicas: 4, ReadyReplicas: 4, AvailableReplicas: 4}
	claim := d.Annotations[keys.ControlInfo]
	for name, tc := range map[string]struct {
		claimed bool
		updated int32
		surge   int
		want    []int32
	}{
		"no step yet": {false, 0, 2, nil}, "a step without Pods": {true, 0, 2, []int32{0}}, "a step within the surge": {true, 2, 2, []int32{2}},
		"a step that takes old Pods first": {true, 2, 1, []int32{0}}, "without a BatchRelease": {false, 2, 2, []int32{2}},
	} {
		t.Run(name, func(t *testing.T) {
			surge(tc.surge)
			if d.Annotations[keys.ControlInfo] = claim; !tc.claimed {
				delete(d.Annotations, keys.ControlInfo)
			}
			d.Annotations[keys.DeploymentStrategy] = replicasets.Strategy{
				Partition: intstr.FromInt32(tc.updated), Revision: replicasets.Hash(&d.Spec.Template, nil),
			}.String()
			p := Plan(Classify(Snapshot{Deployment: d, Sets: []*appsv1.ReplicaSet{before}}))
			var sizes []int32
			for _, a := range p.Actions() {
				sizes = append(sizes, sizeOf(a.After.(*appsv1.ReplicaSet)))
			}
			if !slices.Equal(sizes, tc.want) {
				t.Errorf("sizes %v, want %v: %s", sizes, tc.want, p)
			}
		})
	}
}

// TestNothingIsGivenWhileKubernetesCopies the annotation of the Deployment to the new ReplicaSet, unless the move is half done already.
func TestNothingIsGivenWhileKubernetesCopies(t *testing.T) {
	d := released()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	set := func(image string, size int32) *appsv1.ReplicaSet {
		of := d.DeepCopy()
		of.Spec.Template.Spec.Containers[0].Image = image
		rs := replicasets.Make(of, nil, replicasets.Limits{Replicas: 4, Surge: 1, Unavailable: 1})
		rs.Spec.Replicas, rs.Status = &size, appsv1.ReplicaSetStatus{Replicas: size, ReadyReplicas: size, AvailableReplicas: size}
		return rs
	}
	for name, tc := range map[string]struct {
		held, copied bool
		want         int
	}{
		"it is copied": {false, true, 3}, "it is being copied": {false, false, 1}, "the old one is held already": {true, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			before, fresh := set("app:v1", 4), set("app:v2", 1)
			if tc.held {
				*before.Spec.Replicas, before.Annotations[keys.HeldReplicas] = 3, "3"
			}
			if !tc.copied {
				fresh.Annotations[keys.DeploymentStrategy] = "of the step before"
			}
			p := Plan(Classify(Snapshot{Deployment: d, Sets: []*appsv1.ReplicaSet{before, fresh}}))
			if got := len(p.Actions()); got != tc.want {
				t.Errorf("%d writes, want %d: %s", got, tc.want, p)
			}
		})
	}
}

// TestAVersionBetweenIsHeldWithoutPods: a late write may have given it some since it was seen, which shows in the write that holds it.
func TestAVersionBetweenIsHeldWithoutPods(t *testing.T) {
	d := released()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	limits := replicasets.Limits{Replicas: 4, Surge: 1, Unavailable: 1}
	set := func(image string, revision string, size int32) *appsv1.ReplicaSet {
		of := d.DeepCopy()
		of.Spec.Template.Spec.Containers[0].Image = image
		rs := replicasets.Make(of, nil, limits)
		rs.Annotations[replicasets.RevisionAnnotation] = revision
		rs.Spec.Replicas, rs.Status = &size, appsv1.ReplicaSetStatus{Replicas: size, ReadyReplicas: size, AvailableReplicas: size}
		return rs
	}
	for name, tc := range map[string]struct {
		old      []*appsv1.ReplicaSet
		wantHeld string
	}{
		"one between":   {[]*appsv1.ReplicaSet{set("app:v0", "1", 0), set("app:v1", "2", 4), set("app:between", "3", 0)}, "3"},
		"older ones":    {[]*appsv1.ReplicaSet{set("app:v0", "1", 0), set("app:v1", "2", 4)}, ""},
		"one with Pods": {[]*appsv1.ReplicaSet{set("app:v1", "2", 3), set("app:between", "3", 2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Classify(Snapshot{Deployment: d, Sets: append(tc.old, set("app:v2", "4", 0))}))
			held := ""
			for _, a := range p.Stages[0][0] {
				rs, before := a.After.(*appsv1.ReplicaSet), a.Before.(*appsv1.ReplicaSet)
				if isHeld(rs) && sizeOf(before) == 0 {
					held += rs.Annotations[replicasets.RevisionAnnotation]
				}
			}
			if held != tc.wantHeld {
				t.Errorf("held without Pods: revision %q, want %q: %s", held, tc.wantHeld, p)
			}
		})
	}
}
