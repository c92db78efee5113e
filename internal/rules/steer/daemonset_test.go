package steer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/ondelete"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

func imageTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// daemons returns a DaemonSet of 10 nodes whose template is of the last of some images, each a revision, and Pods by their images.
func daemons(t *testing.T, images []string, pods map[string]int) Objects {
	t.Helper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 2, UID: "u"}}
	set.Spec.Template = imageTemplate(images[len(images)-1])
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled = 2, 10
	o := Objects{Workload: set, Now: now}
	for i, image := range images {
		template := imageTemplate(image)
		data, err := revision.Data(&template)
		if err != nil {
			t.Fatal(err)
		}
		o.Revisions = append(o.Revisions, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + image, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: image}},
			Data:       runtime.RawExtension{Raw: data}, Revision: int64(i + 1),
		})
		for range pods[image] {
			o.Pods = append(o.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Labels:            map[string]string{appsv1.ControllerRevisionHashLabelKey: image},
					CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Minute)),
				},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			})
		}
	}
	return o
}

func TestADaemonSetIsFrozenAndLetGo(t *testing.T) {
	k := nativeDaemonSet{}
	o := daemons(t, []string{"a", "b"}, map[string]int{"a": 10})
	before := o.Workload.DeepCopyObject()
	frozen := Mark(k.Freeze(o), "demo").(*appsv1.DaemonSet)
	if frozen.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || frozen.Annotations[keys.DaemonSetOriginalStrategy] != "RollingUpdate" {
		t.Errorf("frozen as %+v, %v", frozen.Spec.UpdateStrategy, frozen.Annotations)
	}
	if diff := cmp.Diff(before, o.Workload); diff != "" {
		t.Errorf("what was read has changed:\n%s", diff)
	}
	o.Workload = frozen
	if why := k.Refuses(o); why != "" {
		t.Errorf("a template in the middle of a release is refused: %s", why)
	}
	if f := k.See(o); !f.Frozen || !f.Settled || f.Update != "web-b" || f.PodHash != "b" || f.Stable != "web-a" || f.StableHash != "a" || f.Updated != 0 {
		t.Errorf("seen as %+v", f)
	}
	w, err := k.Batch(o, Batch{Step: value("45%")})
	if err != nil {
		t.Fatal(err)
	}
	control, keep, err := ondelete.ParseControl(w.Workload.GetAnnotations()[keys.DaemonSetControl])
	if err != nil || keep != 5 || control.Revision != "b" {
		t.Errorf("a batch of 45%% is %+v, %v", control, err)
	}
	o.Workload = w.Workload
	if again, err := k.Batch(o, Batch{Step: value("45%")}); err != nil || again.Workload != o.Workload {
		t.Errorf("the same batch is written again: %v", err)
	}
	third := k.Freeze(o).(*appsv1.DaemonSet)
	if _, left := third.Annotations[keys.DaemonSetControl]; left || third.Annotations[keys.DaemonSetOriginalStrategy] != "RollingUpdate" {
		t.Errorf("another template keeps what was decided of the one before, or drops the user's strategy: %v", third.Annotations)
	}
	ended := Unmark(k, o).Workload.(*appsv1.DaemonSet)
	if diff := cmp.Diff(before.(*appsv1.DaemonSet).Spec, ended.Spec); diff != "" || len(ended.Annotations) > 0 {
		t.Errorf("let go with annotations %v (-want +got):\n%s", ended.Annotations, diff)
	}
}

func TestWhatADaemonSetSays(t *testing.T) {
	k := nativeDaemonSet{}
	o := daemons(t, []string{"a", "b", "c"}, map[string]int{"a": 6, "b": 3, "c": 1})
	if f := k.See(o); f.Update != "web-c" || f.Updated != 1 || f.Ready != 1 || !f.Mixed || f.RevisionLabel != appsv1.ControllerRevisionHashLabelKey {
		t.Errorf("a second template in the middle: %+v", f)
	}
	o.Workload.(*appsv1.DaemonSet).Spec.Template = imageTemplate("d")
	if f := k.See(o); f.Settled || f.Update != "" {
		t.Errorf("revisions that are older than the template settle it: %+v", f)
	}
	if w, err := k.Batch(o, Batch{Step: value(1)}); err != nil || w.Workload != o.Workload {
		t.Errorf("a batch of an unknown revision is written: %v", err)
	}
	set := o.Workload.(*appsv1.DaemonSet)
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	if k.Refuses(o) == "" {
		t.Error("an OnDelete of the user is released in steps")
	}
	set.Status.DesiredNumberScheduled = 0
	if k.Refuses(o) != "it has no Pods" {
		t.Errorf("without nodes: %q", k.Refuses(o))
	}
}

func TestGuardOfADaemonSet(t *testing.T) {
	k := nativeDaemonSet{}
	o := daemons(t, []string{"a", "b"}, map[string]int{"a": 10})
	o.Workload.SetLabels(map[string]string{keys.WorkloadType: "daemonset"})
	old := Mark(k.Freeze(o), "demo")
	for name, tc := range map[string]struct {
		write func(*appsv1.DaemonSet)
		want  appsv1.DaemonSetUpdateStrategyType
	}{
		"the manifest is written over it": {func(set *appsv1.DaemonSet) { set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType }, appsv1.OnDeleteDaemonSetStrategyType},
		"the object is replaced": {func(set *appsv1.DaemonSet) {
			set.Labels, set.Annotations = nil, nil
			set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
		}, appsv1.OnDeleteDaemonSetStrategyType},
		"the release ends": {func(set *appsv1.DaemonSet) {
			set.Annotations = nil
			set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
		}, appsv1.RollingUpdateDaemonSetStrategyType},
	} {
		t.Run(name, func(t *testing.T) {
			set := old.DeepCopyObject().(*appsv1.DaemonSet)
			tc.write(set)
			stored := k.Guard(old, Objects{Workload: set, Now: now}).(*appsv1.DaemonSet)
			if got := stored.Spec.UpdateStrategy.Type; got != tc.want {
				t.Errorf("stored with type %s, want %s", got, tc.want)
			}
		})
	}
}
