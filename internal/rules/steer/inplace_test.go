package steer

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// stateful is a StatefulSet of Kubernetes with its Pods, its controller and their kubelet, as far as updates concern them.
type stateful struct {
	set       *appsv1.StatefulSet
	pods      []*corev1.Pod
	revisions []*appsv1.ControllerRevision
	now       time.Time
	made      int
	// recreated are Pods that the controller deleted.
	recreated []string
}

const firstOrdinal = 3

func newStateful(replicas int32, maxUnavailable *intstr.IntOrString) *stateful {
	s := &stateful{set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web"}}, now: now}
	s.set.Spec.Replicas = &replicas
	s.set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: firstOrdinal}
	s.set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0)), MaxUnavailable: maxUnavailable},
	}
	s.set.Spec.Template.Labels = map[string]string{"app": "web", keys.InPlaceUpdate: "true"}
	s.set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:1"}}
	s.change(func(*corev1.PodTemplateSpec) {})
	s.set.Status.CurrentRevision = s.set.Status.UpdateRevision
	for range replicas {
		s.control()
		s.serve()
	}
	return s
}

// change changes the template as a user does, and freezes the StatefulSet as the webhook does. Its controller makes the revision.
func (s *stateful) change(how func(*corev1.PodTemplateSpec)) {
	how(&s.set.Spec.Template)
	s.set.Generation++
	s.set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(maxOrdinal))
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": s.set.Spec.Template}})
	if err != nil {
		panic(err)
	}
	s.set.Status.ObservedGeneration = s.set.Generation
	for _, r := range s.revisions {
		if string(r.Data.Raw) == string(data) {
			s.set.Status.UpdateRevision = r.Name
			return
		}
	}
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", len(s.revisions)+1)}, Data: runtime.RawExtension{Raw: data}}
	s.revisions = append(s.revisions, r)
	s.set.Status.UpdateRevision = r.Name
}

func (s *stateful) partition() int32 { return *s.set.Spec.UpdateStrategy.RollingUpdate.Partition }

func (s *stateful) pod(i int32) *corev1.Pod {
	for _, p := range s.pods {
		if p.Name == ordinal.PodName("web", firstOrdinal+i) {
			return p
		}
	}
	return nil
}

// control is one act of the controller of StatefulSets, with Pods managed in parallel: it makes the first Pod that is missing, or recreates
// the last one that is old and not below the partition, unless one above that is not ready. It reports whether there was anything to do.
func (s *stateful) control() bool {
	for i := range *s.set.Spec.Replicas {
		if s.pod(i) != nil {
			continue
		}
		name := s.set.Status.UpdateRevision
		if i < s.partition() {
			name = s.set.Status.CurrentRevision
		}
		s.made++
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: ordinal.PodName("web", firstOrdinal+i), Namespace: "default", UID: types.UID(fmt.Sprint(s.made)), Generation: 1,
		}}
		var of struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		at := slices.IndexFunc(s.revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == name })
		if err := json.Unmarshal(s.revisions[at].Data.Raw, &of); err != nil {
			panic(err)
		}
		p.Labels, p.Spec = of.Spec.Template.Labels, of.Spec.Template.Spec
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = name
		p.Status.Phase = corev1.PodPending
		s.pods = append(s.pods, p)
		return true
	}
	for i := *s.set.Spec.Replicas - 1; i >= s.partition(); i-- {
		p := s.pod(i)
		if !isAt(p, s.set.Status.UpdateRevision) {
			s.recreated = append(s.recreated, p.Name)
			s.delete(p)
			return true
		}
		if !pod.IsReady(p) {
			return false
		}
	}
	return false
}

func (s *stateful) delete(p *corev1.Pod) {
	s.pods = slices.DeleteFunc(s.pods, func(other *corev1.Pod) bool { return other == p })
}

// runs tells whether a Pod's container runs the image of its spec, and is ready.
func runs(p *corev1.Pod) bool {
	return pod.IsReady(p) && p.Status.ContainerStatuses[0].Image == p.Spec.Containers[0].Image
}

// serve is one act of kubelets: the container of a Pod is stopped, or is started with the image of its spec.
func (s *stateful) serve() bool {
	for i, p := range s.pods {
		if runs(p) && p.Status.ObservedGeneration == p.Generation {
			continue
		}
		after := p.DeepCopy()
		if after.Status.ObservedGeneration = p.Generation; runs(p) {
			s.pods[i] = after
			return true
		}
		image, ready := p.Spec.Containers[0].Image, corev1.ConditionTrue
		if pod.IsReady(p) {
			image, ready = "", corev1.ConditionFalse
		}
		after.Status.Phase = corev1.PodRunning
		after.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(s.now)}}
		after.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: image, ImageID: "id of " + image, Ready: image != ""}}
		s.pods[i] = after
		return true
	}
	return false
}

// write carries writes out, but for the last ones if the manager ends before them. It reports whether there were any.
func (s *stateful) write(w Writes, most int) bool {
	for _, c := range w.First {
		if most == 0 {
			return true
		}
		most--
		after := c.After.DeepCopyObject().(*corev1.Pod)
		after.Generation++
		s.pods[slices.Index(s.pods, c.Before.(*corev1.Pod))] = after
	}
	if w.Workload == Object(s.set) || most == 0 {
		return len(w.First) > 0
	}
	s.set = w.Workload.DeepCopyObject().(*appsv1.StatefulSet)
	s.set.Generation++
	s.set.Status.ObservedGeneration = s.set.Generation
	return true
}

func (s *stateful) objects() Objects {
	return Objects{Workload: s.set, Pods: slices.Clone(s.pods), Revisions: s.revisions, Now: s.now}
}

func (s *stateful) unavailable() (n int) {
	for i := range *s.set.Spec.Replicas {
		if p := s.pod(i); p == nil || !runs(p) {
			n++
		}
	}
	return n
}

// TestStatefulSetsAreUpdatedInPlace: whoever acts when, and whenever the manager ends, no Pod is recreated whose image alone changes, no more
// Pods are unavailable than the StatefulSet allows beside those that a user deletes, and the StatefulSet ends as it was.
func TestStatefulSetsAreUpdatedInPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allowed := rapid.IntRange(1, 3).Draw(t, "maxUnavailable")
		s := newStateful(rapid.Int32Range(1, 6).Draw(t, "replicas"), new(intstr.FromInt(allowed)))
		k, step := nativeStatefulSet(), intstr.FromInt32(0)
		s.change(func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Image = "web:2" })
		was := map[types.UID]bool{}
		for _, p := range s.pods {
			was[p.UID] = true
		}
		promoted, lost, changes := false, 0, 0
		next := func() Writes {
			if promoted {
				return k.Promote(s.objects())
			}
			w, err := k.Batch(s.objects(), Batch{Step: &step})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		for range rapid.IntRange(0, 80).Draw(t, "acts") {
			switch who := rapid.IntRange(0, 20).Draw(t, "who"); {
			case who < 6:
				s.write(next(), rapid.IntRange(0, 3).Draw(t, "writes"))
			case who < 11:
				s.serve()
			case who < 16:
				s.control()
			case who < 18:
				step = intstr.FromInt32(min(step.IntVal+1, *s.set.Spec.Replicas))
			case who == 18:
				promoted = promoted || changes > 2
				changes++
			case who == 19 && len(s.pods) > 0 && lost < 2:
				p := s.pods[rapid.IntRange(0, len(s.pods)-1).Draw(t, "deleted")]
				delete(was, p.UID)
				s.delete(p)
				lost++
			case who == 20 && !promoted && changes < 3:
				changes++
				s.change(func(template *corev1.PodTemplateSpec) {
					template.Spec.Containers[0].Image = fmt.Sprintf("web:%d", 1+changes%3)
				})
			}
			if len(s.recreated) > 0 {
				t.Fatalf("recreated: %v, with partition %d", s.recreated, s.partition())
			}
			if n := s.unavailable(); n > allowed+lost {
				t.Fatalf("%d Pods are unavailable, want %d at most, as %d were deleted", n, allowed+lost, lost)
			}
		}
		promoted = true
		for range 400 {
			if !s.write(next(), 9) && !s.serve() && !s.control() {
				break
			}
		}
		if n := s.unavailable(); n > 0 || s.partition() != 0 || k.Remains(s.objects()) != "" || len(s.recreated) > 0 {
			t.Fatalf("at the end %d Pods are unavailable, the partition is %d, %q remains, and %v were recreated",
				n, s.partition(), k.Remains(s.objects()), s.recreated)
		}
		for _, p := range s.pods {
			delete(was, p.UID)
		}
		if len(was) > 0 {
			t.Fatalf("%d Pods are others", len(was))
		}
	})
}

// TestWhatCannotGoInPlaceIsRecreated: one Pod after the other, while no other is unavailable.
func TestWhatCannotGoInPlaceIsRecreated(t *testing.T) {
	s := newStateful(4, nil)
	k := nativeStatefulSet()
	s.change(func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Command = []string{"other"} })
	for range 100 {
		if n := s.unavailable(); n > 1 {
			t.Fatalf("%d Pods are unavailable, want 1 at most", n)
		}
		if !s.write(k.Promote(s.objects()), 9) && !s.control() && !s.serve() {
			break
		}
	}
	if len(s.recreated) != 4 || s.partition() != 0 || s.unavailable() != 0 {
		t.Errorf("%v were recreated, the partition is %d", s.recreated, s.partition())
	}
}

// TestStatefulSetsWithoutTheLabel are left to their controller.
func TestStatefulSetsWithoutTheLabel(t *testing.T) {
	s := newStateful(4, nil)
	s.change(func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers[0].Image = "web:2"
		delete(template.Labels, keys.InPlaceUpdate)
	})
	w, err := nativeStatefulSet().Batch(s.objects(), Batch{Step: new(intstr.FromInt32(3))})
	if err != nil || len(w.First) > 0 || partitionIn(nativeStatefulSet(), w.Workload) != "1" {
		t.Errorf("Batch() = %v and partition %s, %v, want partition 1", w.First, partitionIn(nativeStatefulSet(), w.Workload), err)
	}
}
