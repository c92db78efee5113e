package steer

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// deploymentOf returns a Deployment of 10 replicas of an image, as a Rollout has labelled it.
func deploymentOf(image string) *appsv1.Deployment {
	surge := intstr.FromInt32(3)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d", Generation: 2, Labels: map[string]string{keys.WorkloadType: "deployment"}}}
	d.Spec.Replicas, d.Status.ObservedGeneration = ptr.To(int32(10)), 2
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	return d
}

// setOfImage returns a ReplicaSet of an image with so many replicas, and that many ready Pods.
func setOfImage(image string, revision int, replicas int32) (*appsv1.ReplicaSet, []*corev1.Pod) {
	d := deploymentOf(image)
	rs := replicasets.Make(d, nil, replicasets.Limits{})
	rs.UID, rs.Spec.Replicas = types.UID(image), &replicas
	rs.Annotations[replicasets.RevisionAnnotation] = fmt.Sprint(revision)
	var all []*corev1.Pod
	for i := range replicas {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("%s-%d", rs.Name, i),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		}}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		all = append(all, p)
	}
	return rs, all
}

// deploymentIn returns a Deployment of an image with ReplicaSets of v1 and v2 of so many Pods.
func deploymentIn(image string, v1, v2 int32) Objects {
	first, pods := setOfImage("v1", 1, v1)
	second, more := setOfImage("v2", 2, v2)
	return Objects{Workload: deploymentOf(image), ReplicaSets: []*appsv1.ReplicaSet{second, first}, Pods: append(pods, more...), Now: now}
}

func TestAReleaseOfADeploymentLeavesNothing(t *testing.T) {
	k := deployments{}
	o := deploymentIn("v2", 10, 0)
	before := o.Workload
	frozen := Mark(k.Freeze(o), "demo").(*appsv1.Deployment)
	hash := o.ReplicaSets[1].Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if !frozen.Spec.Paused || frozen.Labels[keys.StableRevision] != hash || frozen.Labels[keys.AdvancedDeployment] != "true" {
		t.Fatalf("it is not frozen: paused %t, labels %v", frozen.Spec.Paused, frozen.Labels)
	}
	o.Workload = frozen
	half := intstr.FromString("50%")
	writes, err := k.Batch(o, Batch{Step: &half})
	if err != nil {
		t.Fatal(err)
	}
	batch := writes.Workload.(*appsv1.Deployment)
	want := fmt.Sprintf(`{"rollingStyle":"Partition","partition":"50%%","revision":%q}`, k.See(o).Update)
	if diff := cmp.Diff(want, batch.Annotations[keys.DeploymentStrategy]); diff != "" {
		t.Errorf("the batch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.(*appsv1.Deployment).Spec.Strategy, batch.Spec.Strategy); diff != "" {
		t.Errorf("the strategy is changed (-want +got):\n%s", diff)
	}
	o.Workload = batch
	if again, err := k.Batch(o, Batch{Step: &half}); err != nil || again.Workload != o.Workload {
		t.Errorf("the batch is written again: %v", err)
	}
	o.Workload = Unmark(k, o).Workload
	if diff := cmp.Diff(before, o.Workload, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the release leaves something behind (-before +after):\n%s", diff)
	}
	if f := k.See(o); f.Frozen || f.Marked {
		t.Errorf("it is still frozen: %+v", f)
	}
	if again := k.Promote(o); again.Workload != o.Workload {
		t.Error("it is let go twice")
	}
}

func TestSeeADeployment(t *testing.T) {
	released := func(image string, v1, v2 int32) Objects {
		o := deploymentIn("v2", v1, v2)
		o.Workload = Mark(deployments{}.Freeze(o), "demo")
		o.Workload.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = image
		return o
	}
	hash := func(image string) string {
		d := deploymentOf(image)
		return replicasets.Hash(&d.Spec.Template, nil)
	}
	for name, tc := range map[string]struct {
		o    Objects
		want string
	}{
		"at rest":                          {deploymentIn("v1", 10, 0), fmt.Sprintf("false false %s>%s 10/10", hash("v1"), hash("v1"))},
		"a release that begins":            {released("v2", 10, 0), fmt.Sprintf("true false %s>%s 0/0", hash("v1"), hash("v2"))},
		"a release in the middle":          {released("v2", 5, 5), fmt.Sprintf("true false %s>%s 5/5 mixed", hash("v1"), hash("v2"))},
		"the old template is back":         {released("v1", 5, 5), fmt.Sprintf("true true %s>%s 5/5 mixed", hash("v1"), hash("v1"))},
		"a third version":                  {released("v3", 5, 5), fmt.Sprintf("true false %s>%s 0/0 mixed", hash("v1"), hash("v3"))},
		"after a native update to version": {deploymentIn("v2", 0, 10), fmt.Sprintf("false false %s>%s 10/10", hash("v2"), hash("v2"))},
	} {
		t.Run(name, func(t *testing.T) {
			f := deployments{}.See(tc.o)
			got := fmt.Sprintf("%t %t %s>%s %d/%d", f.Frozen, f.RolledBack, f.Stable, f.Update, f.Updated, f.Ready)
			if f.Mixed {
				got += " mixed"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuardOfADeployment(t *testing.T) {
	k := deployments{}
	o := deploymentIn("v2", 5, 5)
	old := Mark(k.Freeze(o), "demo").(*appsv1.Deployment)
	for name, tc := range map[string]struct {
		write  func(*appsv1.Deployment)
		paused bool
	}{
		"paused is written back":         {func(d *appsv1.Deployment) { d.Spec.Paused = false }, true},
		"the manifest replaces it":       {func(d *appsv1.Deployment) { d.Spec.Paused, d.Labels, d.Annotations = false, nil, nil }, true},
		"the end of the release":         {func(d *appsv1.Deployment) { *d = *k.Promote(Objects{Workload: old}).Workload.(*appsv1.Deployment) }, false},
		"the strategy becomes Recreate":  {func(d *appsv1.Deployment) { d.Spec.Strategy = appsv1.DeploymentStrategy{Type: "Recreate"} }, true},
		"maxSurge changes in the middle": {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(5)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			written := old.DeepCopy()
			tc.write(written)
			stored := k.Guard(old, Objects{Workload: written}).(*appsv1.Deployment)
			if stored.Spec.Paused != tc.paused || stored.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
				t.Errorf("paused %t, strategy %s", stored.Spec.Paused, stored.Spec.Strategy.Type)
			}
			if diff := cmp.Diff(written.Spec.Strategy.RollingUpdate, stored.Spec.Strategy.RollingUpdate); diff != "" && written.Spec.Strategy.RollingUpdate != nil {
				t.Errorf("the budget is not what was written (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADeploymentIsRefused(t *testing.T) {
	none := deploymentIn("v2", 0, 0)
	noReplicas, recreate := deploymentIn("v2", 10, 0), deploymentIn("v2", 10, 0)
	noReplicas.Workload.(*appsv1.Deployment).Spec.Replicas = ptr.To(int32(0))
	recreate.Workload.(*appsv1.Deployment).Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	for want, o := range map[string]Objects{
		"it has no Pods": noReplicas, "its strategy is Recreate": recreate, "it has no ReplicaSet with Pods": none, "": deploymentIn("v2", 10, 0),
	} {
		if got := (deployments{}).Refuses(o); got != want {
			t.Errorf("refused because %q, want %q", got, want)
		}
	}
}

func TestARecreateOfTheOriginalIsEnded(t *testing.T) {
	d := deploymentOf("v2")
	d.Labels[keys.AdvancedDeployment] = "true"
	d.Spec.Paused, d.Spec.Strategy = true, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	d.Annotations = map[string]string{keys.DeploymentStrategy: `{"rollingUpdate":{"maxSurge":3},"partition":2}`}
	next := deployments{}.Promote(Objects{Workload: d}).Workload.(*appsv1.Deployment)
	if next.Spec.Paused || next.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || next.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() != 3 {
		t.Errorf("paused %t, strategy %+v", next.Spec.Paused, next.Spec.Strategy)
	}
}

// TestTemplatesAreComparedOnce however many Pods there are: a pass is made for each few events of Pods, and comparing templates takes a
// thousand times as long as looking at a Pod.
func TestTemplatesAreComparedOnce(t *testing.T) {
	for name, k := range map[string]Kind{"in batches": deployments{}, "with a second Deployment": canaries{}, "blue and green": blueGreenDeployments()} {
		allocated := func(replicas int32) float64 {
			o := deploymentIn("v2", replicas, replicas/2)
			return testing.AllocsPerRun(3, func() {
				k.Updated(o)
				k.See(o)
				Labelled(k, o, "id")
			})
		}
		if few, many := allocated(10), allocated(1000); many > 2*few {
			t.Errorf("%s: looking at 10 Pods allocates %.0f times, at 1000 Pods %.0f times", name, few, many)
		}
	}
}
