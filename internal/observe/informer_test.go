package observe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// randomPod returns a Pod that has some of what Pods can have.
func randomPod(number int, random *rand.Rand) *corev1.Pod {
	some := func() bool { return random.IntN(3) > 0 }
	moment := metav1.NewTime(time.Unix(1_800_000_000+random.Int64N(1000), 0))
	text := func(of string) string { return fmt.Sprint(of, random.IntN(4)) }
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p-%d", number), Namespace: text("ns-"), UID: types.UID(fmt.Sprintf("u-%d", number)), ResourceVersion: text("1"),
			CreationTimestamp: moment,
		},
		Spec:   corev1.PodSpec{NodeName: text("n-")},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: text("10.0.0.")},
	}
	if some() {
		p.DeletionTimestamp = &moment
	}
	if some() {
		p.Labels = map[string]string{text("a"): text("v"), text("b"): ""}
		p.Annotations = map[string]string{"kruise.io/sidecarset-injected-list": text("s")}
	}
	if some() {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: text("K"), Name: "o", UID: types.UID(text("o")), Controller: ptr.To(some())}}
	}
	if some() {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(text("g"))}}
	}
	if some() {
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}, {IP: text("fd00::")}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: moment, Message: text("m")}}
	}
	if some() {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: text("e"), Image: text("i"), Command: []string{"sh"}}},
		}
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: text("e"), Image: text("i"), Ready: some()}}
	}
	for at := range random.IntN(4) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", at), Image: text("image-")}
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: text("id-"), ContainerID: text("containerd://"), Ready: some(),
			RestartCount: random.Int32N(3), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment}}}
		if some() {
			c.Ports = []corev1.ContainerPort{{Name: text("http"), ContainerPort: random.Int32N(3)}}
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: random.Int32N(3), Reason: text("r")}
		}
		if some() {
			p.Spec.Containers, p.Status.ContainerStatuses = append(p.Spec.Containers, c), append(p.Status.ContainerStatuses, s)
			continue
		}
		if some() {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers, p.Status.InitContainerStatuses = append(p.Spec.InitContainers, c), append(p.Status.InitContainerStatuses, s)
	}
	return p
}

// TestOutlinesLoseNothingThatIsRead has Pods that differ in any one thing share all the rest.
func TestOutlinesLoseNothingThatIsRead(t *testing.T) {
	transform := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})
	random := rand.New(rand.NewPCG(1, 2))
	var want []*corev1.Pod
	var stored []any
	for number := range 5_000 {
		p := randomPod(number, random)
		want = append(want, p.DeepCopy())
		got, err := transform(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := transform(got) // as the reflector does with what a streaming list has sent
		if err != nil || again != got {
			t.Fatalf("an outline of an outline: %v, %v", again, err)
		}
		if diff := cmp.Diff(want[number], podOf(got)); diff != "" {
			t.Fatalf("pod %d at once (-want +got):\n%s", number, diff)
		}
		stored = append(stored, got)
	}
	for _, at := range random.Perm(len(want)) {
		o := stored[at].(*outline)
		o.recent().Store(nil)
		if diff := cmp.Diff(&want[at].ObjectMeta, o.GetObjectMeta()); diff != "" {
			t.Fatalf("metadata of pod %d (-want +got):\n%s", at, diff)
		}
		if diff := cmp.Diff(want[at], podOf(o)); diff != "" {
			t.Fatalf("pod %d (-want +got):\n%s", at, diff)
		}
	}
}

// TestOutlinesShareMaps: what Pods of a template have in common is there once, whatever else their labels and annotations are.
func TestOutlinesShareMaps(t *testing.T) {
	o := &outliner{}
	outlineOf := func(labels, annotations map[string]string) *outline {
		out, err := o.outline(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, annotations)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := outlineOf(map[string]string{"app": "a", "zone": "z1"}, map[string]string{"address": "1", "scrape": "true"})
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		// own is what the outline itself holds.
		own int
	}{
		"the same as the first":     {labels: map[string]string{"app": "a", "zone": "z1"}, annotations: map[string]string{"address": "1", "scrape": "true"}},
		"another value":             {labels: map[string]string{"app": "a", "zone": "z2"}, annotations: map[string]string{"address": "1", "scrape": "true"}, own: 1},
		"more and others":           {labels: map[string]string{"app": "a", "zone": "z2", "more": ""}, annotations: map[string]string{"address": "2", "scrape": "true"}, own: 3},
		"one of the first's lacks":  {labels: map[string]string{"app": "a"}, annotations: map[string]string{"address": "2", "scrape": "true"}, own: 2},
		"all of the first's lack":   {annotations: map[string]string{"other": "x"}, own: 1},
		"no annotations, no labels": {},
	} {
		t.Run(name, func(t *testing.T) {
			of := outlineOf(tc.labels, tc.annotations)
			if of.shape != first.shape {
				t.Fatal("the outline has a shape of its own")
			}
			p, held := of.pod(), &corev1.Pod{}
			if err := held.Unmarshal(of.own); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.labels, p.Labels) + cmp.Diff(tc.annotations, p.Annotations); diff != "" {
				t.Errorf("labels and annotations (-want +got):\n%s", diff)
			}
			if own := len(held.Labels) + len(held.Annotations); own != tc.own {
				t.Errorf("the outline holds %d labels and annotations of its own, want %d", own, tc.own)
			}
		})
	}
}

// TestOutlinesForgetWhatNoPodHas makes Pods that have nothing in common, and drops them.
func TestOutlinesForgetWhatNoPodHas(t *testing.T) {
	o := &outliner{}
	shapes := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.shapes)
	}
	var stored []*outline
	for number := range 100 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(number), Labels: map[string]string{"a": fmt.Sprint(number)}}}
		kept, err := o.outline(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, kept)
	}
	if made := shapes(); made != 100 {
		t.Fatalf("%d shapes of 100 Pods", made)
	}
	stored = stored[:1]
	clear(stored[1:100])
	for at := range o.recent {
		o.recent[at].Store(nil) // what was read of late is kept, and so is its shape
	}
	for until := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		left := shapes()
		if left == 1 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d shapes of 1 Pod", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := stored[0].pod(); got.Namespace != "0" || got.Labels["a"] != "0" {
		t.Errorf("the Pod that is left is of namespace %s with labels %v", got.Namespace, got.Labels)
	}
}

// streamed returns an informer of Pods, of which the first is there when it begins, and what tells it of others.
func streamed(t *testing.T) (cache.SharedIndexInformer, *watch.FakeWatcher) {
	t.Helper()
	events := watch.NewFake()
	informer := NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			return nil, errors.New("the list is streamed")
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if ptr.Deref(o.SendInitialEvents, false) {
				go func() {
					events.Add(owned("first", "o1"))
					events.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						ResourceVersion: "2", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
					}})
				}()
			}
			return events, nil
		},
	}, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := informer.SetTransform(SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})); err != nil {
		t.Fatal(err)
	}
	return informer, events
}

// TestInformersTellOfPods has readers, indexes and handlers of an informer see a Pod from its creation to its end.
func TestInformersTellOfPods(t *testing.T) {
	informer, events := streamed(t)
	byOwner := func(object any) ([]string, error) { return ControllerKey(object.(*corev1.Pod)), nil }
	if err := informer.AddIndexers(cache.Indexers{ByController: byOwner}); err != nil {
		t.Fatal(err)
	}
	told := &record{news: make(chan string, 10)}
	if _, err := informer.AddEventHandler(told); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	told.expect(t, "add first of o1")

	events.Add(owned("second", "o2"))
	told.expect(t, "add second of o2")
	changed := owned("second", "o1")
	changed.ResourceVersion = "3"
	events.Modify(changed)
	told.expect(t, "update second of o2 to o1")

	if _, ok := informer.GetIndexer().(podIndexer).Indexer.List()[0].(*outline); !ok {
		t.Fatal("the store holds no outlines")
	}
	found, ok, err := informer.GetStore().GetByKey("ns/second")
	if p, isPod := found.(*corev1.Pod); err != nil || !ok || !isPod || p.Name != "second" {
		t.Errorf("by key: %v, %v, %v", found, ok, err)
	}
	for name, value := range map[string]string{cache.NamespaceIndex: "ns", ByController: "o1"} {
		objects, err := informer.GetIndexer().ByIndex(name, value)
		if err != nil {
			t.Fatal(err)
		}
		if got := namesOf(objects); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("by index %s: %v", name, got)
		}
	}
	// Readers of a cache select by a second index with the function of the first's indexer.
	if of, err := informer.GetIndexer().GetIndexers()[ByController](found); err != nil || !slices.Equal(of, []string{"o1"}) {
		t.Errorf("the index of a Pod that was read: %v, %v", of, err)
	}
	events.Delete(changed)
	told.expect(t, "delete second of o1")
}

func owned(name, owner string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: "2",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: types.UID(owner), Controller: ptr.To(true)}},
	}}
}

func namesOf(objects []any) []string {
	var out []string
	for _, object := range objects {
		out = append(out, object.(*corev1.Pod).Name)
	}
	slices.Sort(out)
	return out
}

// record writes down what a handler is told.
type record struct{ news chan string }

func (r *record) OnAdd(object any, _ bool) {
	p := object.(*corev1.Pod)
	r.news <- fmt.Sprintf("add %s of %s", p.Name, ControllerKey(p)[0])
}

func (r *record) OnUpdate(before, after any) {
	b, p := before.(*corev1.Pod), after.(*corev1.Pod)
	r.news <- fmt.Sprintf("update %s of %s to %s", p.Name, ControllerKey(b)[0], ControllerKey(p)[0])
}

func (r *record) OnDelete(object any) {
	p := object.(*corev1.Pod)
	r.news <- fmt.Sprintf("delete %s of %s", p.Name, ControllerKey(p)[0])
}

func (r *record) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.news:
		if got != want {
			t.Fatalf("the handler is told %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("the handler is not told %q", want)
	}
}

// TestATombstoneHoldsAPod has a handler learn late that a Pod is gone.
func TestATombstoneHoldsAPod(t *testing.T) {
	stored, err := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})(owned("p", "o"))
	if err != nil {
		t.Fatal(err)
	}
	got := podOf(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: stored}).(cache.DeletedFinalStateUnknown)
	if p, ok := got.Obj.(*corev1.Pod); !ok || p.Name != "p" || got.Key != "ns/p" {
		t.Errorf("the tombstone has %v", got)
	}
}

// TestOutlinesAreReadFromManySides has readers meet in the few places in which Pods that were read of late are kept.
func TestOutlinesAreReadFromManySides(t *testing.T) {
	o := &outliner{}
	var stored []*outline
	for number := range 3 * len(o.recent) {
		kept, err := o.outline(owned(fmt.Sprint(number), "o"), nil)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, kept)
	}
	var readers sync.WaitGroup
	for seed := range uint64(4) {
		readers.Go(func() {
			for _, at := range rand.New(rand.NewPCG(seed, 0)).Perm(len(stored)) {
				if got := stored[at].pod().Name; got != fmt.Sprint(at) {
					t.Errorf("pod %d is read as %s", at, got)
				}
			}
		})
	}
	readers.Wait()
}

func BenchmarkOutline(b *testing.B) {
	stored, err := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})(decoded(b))
	if err != nil {
		b.Fatal(err)
	}
	o := stored.(*outline)
	for b.Loop() {
		o.recent().Store(nil)
		o.pod()
	}
}

func BenchmarkOutlineMetadata(b *testing.B) {
	stored, err := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})(decoded(b))
	if err != nil {
		b.Fatal(err)
	}
	o := stored.(*outline)
	o.recent().Store(nil)
	for b.Loop() {
		o.GetObjectMeta()
	}
}

func BenchmarkSlimPod(b *testing.B) {
	transform := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})
	p := decoded(b)
	for b.Loop() {
		if _, err := transform(p); err != nil {
			b.Fatal(err)
		}
	}
}

func decoded(b *testing.B) *corev1.Pod {
	b.Helper()
	p := &corev1.Pod{}
	if err := p.Unmarshal(encodedPod(1, rand.New(rand.NewPCG(1, 2)), replicaSets)); err != nil {
		b.Fatal(err)
	}
	return p
}
