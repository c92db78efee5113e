package deployment

import (
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
