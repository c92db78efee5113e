package forecast

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func metadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(start())}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web:v1"}}},
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func cloneSet(replicas int32, rolling v1beta1.RollingUpdateCloneSetStrategy) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metadata()}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = &replicas, selector(), template()
	set.Spec.UpdateStrategy.RollingUpdate = &rolling
	return set
}

func statefulSet(replicas int32, rolling v1beta1.RollingUpdateStatefulSetStrategy) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{ObjectMeta: metadata()}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = &replicas, selector(), template()
	set.Spec.UpdateStrategy.RollingUpdate = &rolling
	return set
}

// grown returns a world in which the Pods of a workload run, as a forecast has brought them up.
func grown(t *testing.T, owner client.Object, more ...client.Object) *World {
	t.Helper()
	w := NewWorld(start(), append(more, owner)...)
	if _, err := Run(t.Context(), w, owner); err != nil {
		t.Fatal(err)
	}
	w.Now = w.Now.Add(time.Hour)
	return w
}

// changed returns the forecast of a workload whose template has another image.
func changed[O client.Object](t *testing.T, w *World, owner O, change func(O)) Result {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(owner), owner); err != nil {
		t.Fatal(err)
	}
	change(owner)
	owner.SetGeneration(owner.GetGeneration() + 1)
	r, err := Run(t.Context(), w, owner)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// short writes steps as BATCH@SECONDS VERB NUMBER, where NUMBER counts Pods in the order in which they are first named.
func short(r Result) string {
	numbers := map[string]int{}
	var out []string
	for _, s := range r.Steps {
		if _, known := numbers[s.Pod]; !known {
			numbers[s.Pod] = len(numbers) + 1
		}
		verb := string(s.Verb)
		if s.Recreated {
			verb = "recreate"
		}
		out = append(out, fmt.Sprintf("%d@%d %s %d", s.Batch, s.Seconds, verb, numbers[s.Pod]))
	}
	return strings.Join(out, ", ")
}

func image(to string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = to }
}

func TestCloneSet(t *testing.T) {
	one := intstr.FromInt32(1)
	inPlace := v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, MaxUnavailable: &one}
	with := func(change func(*v1beta1.RollingUpdateCloneSetStrategy)) v1beta1.RollingUpdateCloneSetStrategy {
		out := inPlace
		change(&out)
		return out
	}
	for name, tc := range map[string]struct {
		rolling v1beta1.RollingUpdateCloneSetStrategy
		ready   int32
		change  func(*v1beta1.CloneSet)
		want    string
		least   int
		seconds int64
		held    string
	}{
		"in place, one at a time": {rolling: inPlace, change: image("web:v2"), want: "1@0 update 1, 2@0 update 2, 3@0 update 3", least: 2},
		"each has to be ready for a while": {rolling: inPlace, ready: 30, change: image("web:v2"),
			want: "1@0 update 1, 2@30 update 2, 3@60 update 3", least: 2, seconds: 90},
		"a grace period before each": {
			rolling: with(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
				r.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 10}
			}),
			change: image("web:v2"), want: "1@0 update 1, 2@10 update 2, 3@20 update 3", least: 2, seconds: 30,
		},
		"as far as the partition": {
			rolling: with(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.Partition = ptr.To(intstr.FromInt32(2)) }),
			change:  image("web:v2"), want: "1@0 update 1", least: 2,
		},
		"a change that can't go in place": {rolling: inPlace, change: func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"serve"} },
			want: "1@0 recreate 1, 2@0 create 2, 3@0 recreate 3, 4@0 create 4, 5@0 recreate 5, 6@0 create 6", least: 2},
		"paused": {rolling: with(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.Paused = true }), change: image("web:v2"), least: 3,
			held: "the update is paused: 3 Pods are not at"},
		"more Pods": {rolling: inPlace, change: func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(5)) }, want: "1@0 create 1, 1@0 create 2", least: 3},
		"in place only, and it can't": {
			rolling: with(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
				r.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
			}),
			change: func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"serve"} }, least: 3, held: "InPlaceOnly",
		},
		"a hook that nobody lets go": {
			rolling: inPlace, change: func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"app": "web"}}}
				image("web:v2")(s)
			}, want: "1@0 update 1", least: 2, held: "its inPlaceUpdate hook holds it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := cloneSet(3, tc.rolling)
			set.Spec.MinReadySeconds = tc.ready
			w := grown(t, set)
			r := changed(t, w, set, tc.change)
			if d := cmp.Diff(tc.want, short(r)); d != "" {
				t.Error(d)
			}
			if r.Least != tc.least || r.Seconds != tc.seconds {
				t.Errorf("at least %d are available, and it takes %d seconds, want %d and %d", r.Least, r.Seconds, tc.least, tc.seconds)
			}
			if held := strings.Join(r.Held, "; "); !strings.Contains(held, tc.held) || (held == "") != (tc.held == "") {
				t.Errorf("what is held is %q, want %q", held, tc.held)
			}
		})
	}
}

// TestBrokenStays checks that a Pod that is broken now is not counted on, and that it goes first.
func TestBrokenStays(t *testing.T) {
	one := intstr.FromInt32(1)
	set := cloneSet(3, v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, MaxUnavailable: &one})
	w := grown(t, set)
	broken := w.pods()[1]
	broken.Status.ContainerStatuses[0].Ready = false
	broken.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for i := range broken.Status.Conditions {
		if broken.Status.Conditions[i].Type == corev1.PodReady {
			broken.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	r := changed(t, w, set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true })
	if len(r.Steps) > 0 || r.Least != 2 {
		t.Errorf("without a change: %s, %d available", short(r), r.Least)
	}
	r = changed(t, w, set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.Paused = false
		image("web:v2")(s)
	})
	if len(r.Steps) != 3 || r.Steps[0].Pod != broken.Name {
		t.Errorf("%s was to go first: %+v", broken.Name, r.Steps)
	}
}

func TestStatefulSet(t *testing.T) {
	set := statefulSet(3, v1beta1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(int32(1))})
	w := grown(t, set)
	r := changed(t, w, set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:v2" })
	var got []string
	for _, s := range r.Steps {
		got = append(got, string(s.Verb)+" "+s.Pod)
	}
	if d := cmp.Diff([]string{"delete web-2", "create web-2", "delete web-1", "create web-1"}, got); d != "" {
		t.Error(d)
	}
}

func TestDaemonSet(t *testing.T) {
	set := &v1beta1.DaemonSet{ObjectMeta: metadata()}
	set.Spec.Selector, set.Spec.Template = selector(), template()
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{Type: v1beta1.InPlaceRollingUpdateType}
	var nodes []client.Object
	for i := range 3 {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
	}
	w := grown(t, set, nodes...)
	r := changed(t, w, set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "web:v2" })
	seen := map[string]bool{}
	for _, s := range r.Steps {
		if s.Verb != plan.Update {
			t.Errorf("step %+v is not in place", s)
		}
		seen[s.Node] = true
	}
	if len(r.Steps) != 3 || !reflect.DeepEqual(seen, map[string]bool{"n0": true, "n1": true, "n2": true}) {
		t.Errorf("the steps are %+v", r.Steps)
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := Run(context.Background(), NewWorld(start()), &corev1.Pod{}); err == nil || !strings.Contains(err.Error(), "only for CloneSets") {
		t.Errorf("a Pod has a forecast: %v", err)
	}
}

// BenchmarkRun is the forecast of an update of a thousand Pods, of which so many may be unavailable at once.
func BenchmarkRun(b *testing.B) {
	for _, unavailable := range []int32{1, 50, 200} {
		b.Run(fmt.Sprint(unavailable), func(b *testing.B) {
			at := intstr.FromInt32(unavailable)
			set := cloneSet(1000, v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, MaxUnavailable: &at,
			})
			for b.Loop() {
				w := NewWorld(start(), set.DeepCopy())
				if _, err := Run(b.Context(), w, set.DeepCopy()); err != nil {
					b.Fatal(err)
				}
				w.Now = w.Now.Add(time.Hour)
				grown := set.DeepCopy()
				if err := w.Get(b.Context(), client.ObjectKeyFromObject(set), grown); err != nil {
					b.Fatal(err)
				}
				image("web:v2")(grown)
				grown.Generation++
				r, err := Run(b.Context(), w, grown)
				if err != nil || len(r.Steps) != 1000 {
					b.Fatal(len(r.Steps), err)
				}
			}
		})
	}
}

// TestCutOff: a forecast that is cut off tells the first steps of the whole one, and at least one.
func TestCutOff(t *testing.T) {
	one := intstr.FromInt32(1)
	set := cloneSet(6, v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: &one})
	w := grown(t, set)
	image("web:v2")(set)
	set.Generation++
	whole, err := Run(t.Context(), NewWorld(w.Now, w.all()...), set.DeepCopy())
	if err != nil || whole.Cut {
		t.Fatal(whole.Cut, err)
	}
	told := 0
	for _, looks := range []int{1, 30, 60, 1_000_000} {
		cut, err := RunWithin(t.Context(), NewWorld(w.Now, w.all()...), set.DeepCopy(), looks)
		if err != nil {
			t.Fatal(err)
		}
		if len(cut.Steps) <= told || len(cut.Steps) > len(whole.Steps) {
			t.Fatalf("%d steps within %d looks, %d with fewer looks, %d in all", len(cut.Steps), looks, told, len(whole.Steps))
		}
		told = len(cut.Steps)
		if d := cmp.Diff(whole.Steps[:told], cut.Steps); d != "" {
			t.Errorf("within %d looks: %s", looks, d)
		}
		if cut.Cut != (told < len(whole.Steps)) {
			t.Errorf("within %d looks: cut is %t after %d of %d steps", looks, cut.Cut, told, len(whole.Steps))
		}
	}
	if told != len(whole.Steps) {
		t.Errorf("%d of %d steps are told without a cut", told, len(whole.Steps))
	}
}
