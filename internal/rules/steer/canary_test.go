package steer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

func ownerOf(uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "rollouts.kruise.io/v1beta1", Kind: "BatchRelease", Name: "demo", UID: types.UID(uid), Controller: ptr.To(true)}
}

// setOf returns the ReplicaSet of a template of a Deployment, and as many ready Pods as it is to have, ready for a time.
func setOf(d *appsv1.Deployment, image string, size int32, ready time.Duration) (*appsv1.ReplicaSet, []*corev1.Pod) {
	of := d.DeepCopy()
	of.Spec.Template.Spec.Containers[0].Image = image
	rs := replicasets.Make(of, nil, replicasets.Limits{})
	rs.UID, rs.Spec.Replicas = types.UID(rs.Name), &size
	var pods []*corev1.Pod
	for range size {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: rs.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ready)),
			}}},
		})
	}
	return rs, pods
}

// canaryRelease returns a Deployment of 10 Pods of v1 whose template is of v2, frozen for a release.
func canaryRelease(t *testing.T) (canaries, Objects) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "d", Generation: 2, Labels: map[string]string{
		"app.kubernetes.io/instance": "repository", keys.WorkloadType: "deployment",
	}}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To(int32(10)), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template = imageTemplate("web:v2")
	d.Status.ObservedGeneration = 2
	o := Objects{Workload: d, Now: now}
	rs, pods := setOf(d, "web:v1", 10, time.Hour)
	o.ReplicaSets, o.Pods = []*appsv1.ReplicaSet{rs}, pods
	k := canaries{}
	o.Workload = Mark(k.Freeze(o), "demo")
	return k, o
}

// withSecond carries a batch out: the second Deployment is there, with its Pods.
func withSecond(t *testing.T, k canaries, o Objects, b Batch, ready time.Duration) Objects {
	t.Helper()
	w, err := k.Batch(o, b)
	if err != nil || len(w.Then) != 1 || w.Then[0].Before != nil || w.Workload != o.Workload {
		t.Fatalf("writes %+v, %v", w, err)
	}
	second := w.Then[0].After.(*appsv1.Deployment)
	second.UID = "second-" + b.Owner.UID
	rs, pods := setOf(second, "web:v2", *second.Spec.Replicas, ready)
	o.Canaries, o.ReplicaSets, o.Pods = append(o.Canaries, second), append(o.ReplicaSets, rs), append(o.Pods, pods...)
	return o
}

func TestASecondDeploymentRunsTheNewTemplate(t *testing.T) {
	k, o := canaryRelease(t)
	before := o.Workload.(*appsv1.Deployment)
	if f := k.See(o); !f.Frozen || f.PodHash != "" || f.StableHash != o.ReplicaSets[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey] || f.RolledBack || f.Updated != 0 {
		t.Errorf("before the first batch: %+v", f)
	}
	batch := Batch{Step: value("15%"), Owner: ownerOf("b"), Metadata: &v1beta1.PatchPodTemplateMetadata{
		Labels: map[string]string{"app": "web-new"}, Annotations: map[string]string{"note": "new"},
	}}
	o = withSecond(t, k, o, batch, time.Hour)
	second := o.Canaries[0]
	if *second.Spec.Replicas != 2 || second.Spec.Paused || !strings.HasPrefix(second.Name, "web-") {
		t.Errorf("%s has %d replicas, paused %v", second.Name, *second.Spec.Replicas, second.Spec.Paused)
	}
	if diff := cmp.Diff(map[string]string{keys.CanaryDeployment: "web"}, second.Labels); diff != "" {
		t.Errorf("a tool may take it for its own (-want +got):\n%s", diff)
	}
	want := map[string]string{"app": "web-new", keys.CanaryDeployment: "web"}
	if diff := cmp.Diff(want, second.Spec.Template.Labels); diff != "" || second.Spec.Template.Annotations["note"] != "new" {
		t.Errorf("labels of its Pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, second.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("its selector (-want +got):\n%s", diff)
	}
	if by, claimed := ClaimOf(second); !claimed || by.UID != "b" || !metav1.IsControlledBy(second, &metav1.ObjectMeta{UID: "b"}) {
		t.Errorf("it is claimed by %+v, and owned by %v", by, second.OwnerReferences)
	}
	f := k.See(o)
	if f.Updated != 2 || f.Ready != 2 || f.PodHash == "" || f.PodHash == f.StableHash {
		t.Errorf("with its Pods: %+v", f)
	}
	if diff := cmp.Diff(before.Spec.Template, imageTemplate("web:v2")); diff != "" {
		t.Errorf("what was read has changed:\n%s", diff)
	}
}

func TestBatchesOfASecondDeployment(t *testing.T) {
	k, o := canaryRelease(t)
	first := Batch{Step: value(3), Owner: ownerOf("b")}
	o = withSecond(t, k, o, first, time.Hour)
	for name, tc := range map[string]struct {
		batch  Batch
		change func(*appsv1.Deployment)
		want   string
	}{
		"the same again":                   {batch: first},
		"more":                             {batch: Batch{Step: value("50%"), Owner: ownerOf("b")}, want: "scale the second Deployment to 5 Pods"},
		"less is never taken back":         {batch: Batch{Step: value(1), Owner: ownerOf("b")}},
		"nothing while it is paused":       {batch: Batch{Step: value("50%"), Owner: ownerOf("b"), Paused: true}},
		"nothing is made while one leaves": {batch: Batch{Step: value("50%"), Owner: ownerOf("b")}, change: func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }},
		"another BatchRelease has its own": {batch: Batch{Step: value(1), Owner: ownerOf("other")}, want: "make a second Deployment with 1 Pods of the new template"},
		"one of another template gets no Pods": {batch: first, change: func(d *appsv1.Deployment) { d.Name = "web-other" },
			want: "scale the second Deployment to 0 Pods; make a second Deployment with 3 Pods of the new template"},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Canaries = []*appsv1.Deployment{o.Canaries[0].DeepCopy()}
			if tc.change != nil {
				tc.change(o.Canaries[0])
			}
			w, err := k.Batch(o, tc.batch)
			if err != nil || w.Workload != o.Workload {
				t.Errorf("the Deployment is written, %v", err)
			}
			var got []string
			for _, c := range w.Then {
				got = append(got, c.What)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyAvailablePodsOfASecondDeploymentCount, and when to look again for one that is only ready.
func TestOnlyAvailablePodsOfASecondDeploymentCount(t *testing.T) {
	k, o := canaryRelease(t)
	o.Workload.(*appsv1.Deployment).Spec.MinReadySeconds = 60
	o = withSecond(t, k, o, Batch{Step: value(2), Owner: ownerOf("b")}, 20*time.Second)
	if f := k.See(o); f.Updated != 2 || f.Ready != 0 || f.After != 40*time.Second {
		t.Errorf("updated %d, ready %d, look again in %s", f.Updated, f.Ready, f.After)
	}
}

func TestTheEndOfACanary(t *testing.T) {
	k, o := canaryRelease(t)
	o = withSecond(t, k, o, Batch{Step: value(2), Owner: ownerOf("b")}, time.Hour)
	o.Workload = Claim(o.Workload, ownerOf("b"))
	promoted := k.Promote(o).Workload.(*appsv1.Deployment)
	if promoted.Spec.Paused || k.See(Objects{Workload: promoted, ReplicaSets: o.ReplicaSets}).Frozen {
		t.Errorf("it is paused: %+v", promoted.Annotations)
	}
	if stored := k.Guard(o.Workload, Objects{Workload: promoted}); stored.(*appsv1.Deployment).Spec.Paused {
		t.Error("the webhook pauses it again")
	}
	o.Workload = promoted
	if k.Remains(o) == "" {
		t.Error("nothing remains before it has begun")
	}
	fresh, pods := setOf(promoted, "web:v2", 10, time.Hour)
	o.ReplicaSets, o.Pods = append(o.ReplicaSets, fresh), append(o.Pods[10:], pods...)
	o.ReplicaSets[0].Spec.Replicas = ptr.To(int32(0))
	if why := k.Remains(o); why != "" {
		t.Errorf("all is done, and there remains: %s", why)
	}
	ended := Unmark(k, o).Workload
	if diff := cmp.Diff(map[string]string{"app.kubernetes.io/instance": "repository", keys.WorkloadType: "deployment"}, ended.GetLabels()); diff != "" || len(ended.GetAnnotations()) > 0 {
		t.Errorf("annotations %v are left, and labels (-want +got):\n%s", ended.GetAnnotations(), diff)
	}
}

func TestACanaryThatIsAbandoned(t *testing.T) {
	_, o := canaryRelease(t)
	left := Abandon(o).Workload.(*appsv1.Deployment)
	if !left.Spec.Paused || len(left.Annotations) > 0 || left.Labels[keys.StableRevision] != "" {
		t.Errorf("left paused %v with %v and %v", left.Spec.Paused, left.Annotations, left.Labels)
	}
}

func TestGuardOfACanary(t *testing.T) {
	k, o := canaryRelease(t)
	for name, write := range map[string]func(*appsv1.Deployment){
		"it is unpaused":         func(d *appsv1.Deployment) { d.Spec.Paused = false },
		"the object is replaced": func(d *appsv1.Deployment) { d.Spec.Paused, d.Labels, d.Annotations = false, nil, nil },
		"it becomes Recreate": func(d *appsv1.Deployment) {
			d.Spec.Paused, d.Spec.Strategy.Type = false, appsv1.RecreateDeploymentStrategyType
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := o.Workload.DeepCopyObject().(*appsv1.Deployment)
			write(d)
			stored := k.Guard(o.Workload, Objects{Workload: d}).(*appsv1.Deployment)
			if !stored.Spec.Paused || stored.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
				t.Errorf("stored paused %v, %s", stored.Spec.Paused, stored.Spec.Strategy.Type)
			}
		})
	}
}

func TestARollbackOfACanary(t *testing.T) {
	k, o := canaryRelease(t)
	o = withSecond(t, k, o, Batch{Step: value(2), Owner: ownerOf("b")}, time.Hour)
	d := o.Workload.DeepCopyObject().(*appsv1.Deployment)
	d.Spec.Template = imageTemplate("web:v1")
	o.Workload = d
	o.Workload = Mark(k.Freeze(o), "demo")
	if f := k.See(o); !f.RolledBack || f.Stable != f.Update || f.Updated != 10 {
		t.Errorf("seen as %+v", f)
	}
}

func TestLongNamesOfDeployments(t *testing.T) {
	long := strings.Repeat("a", 100)
	value := CanaryLabel(long)[keys.CanaryDeployment]
	if len(value) > 63 || value == CanaryLabel(long + "b")[keys.CanaryDeployment] {
		t.Errorf("the label is %q", value)
	}
}
