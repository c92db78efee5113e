package spread_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/internal/spread"
)

// store is an API server, with what it was asked.
type store struct {
	client.WithWatch
	reads, writes atomic.Int32
	// written is called during each write; it may be nil.
	written func()
}

// newStore returns a store with a WorkloadSpread of ReplicaSet web, whose subset a takes so many Pods, and b all others.
func newStore(t testing.TB, most int) *store {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ws := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ws"}}
	ws.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}
	ws.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a", MaxReplicas: new(intstr.FromInt32(int32(most)))}, {Name: "b"}}
	s := &store{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(ws).WithStatusSubresource(ws).
		WithIndex(&corev1.Pod{}, observe.BySpread, observe.SpreadKeys).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
				s.writes.Add(1)
				if s.written != nil {
					s.written()
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, o, p, options...)
			},
		}).Build()
	return s
}

// live counts reads around the cache.
type live struct{ *store }

func (l live) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	l.reads.Add(1)
	return l.store.Get(ctx, key, into, options...)
}

func newLedger(s *store, holder string) *spread.Ledger {
	return spread.NewLedger(spread.Config{
		Cached: s.WithWatch, Live: live{s}, Holder: holder, Pause: time.Millisecond, Patience: 200 * time.Millisecond, Now: time.Now,
		SeenPods: func(context.Context) (string, error) { return "999999999", nil },
	})
}

func (s *store) spread(t testing.TB) *v1beta1.WorkloadSpread {
	t.Helper()
	ws := &v1beta1.WorkloadSpread{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, ws); err != nil {
		t.Fatal(err)
	}
	return ws
}

func (s *store) request(t testing.TB) spread.Request {
	t.Helper()
	ws := s.spread(t)
	fill, err := rules.FillOf(ws, 0)
	if err != nil {
		t.Fatal(err)
	}
	return spread.Request{Spread: ws, Fill: fill, Version: "v1"}
}

// podOf stores a Pod that is given to the first subset.
func (s *store) podOf(t testing.TB, l *spread.Ledger) *corev1.Pod {
	t.Helper()
	room, err := l.Give(t.Context(), s.request(t))
	if err != nil || room.Subset != 0 {
		t.Fatalf("got %+v, error %v", room, err)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{"pod-template-hash": "v1"}}}
	if err := rules.Inject(p, s.spread(t), room); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAnswersThatComeTooLateKeepNoRoom: the API server refuses a Pod for which the webhook took too long, and its controller tries again.
func TestAnswersThatComeTooLateKeepNoRoom(t *testing.T) {
	s := newStore(t, 1)
	l := newLedger(s, "one")
	late, refuse := context.WithCancel(t.Context())
	s.written = refuse
	if room, err := l.Give(late, s.request(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %+v and error %v for a Pod that was refused", room, err)
	}
	room, err := l.Give(t.Context(), s.request(t))
	if err != nil || room.Subset != 0 || room.Entry == "" {
		t.Errorf("the Pod that is created once more got %+v, error %v", room, err)
	}
	if room, err := l.Give(t.Context(), s.request(t)); err != nil || room.Subset != 1 {
		t.Errorf("one more Pod got %+v, error %v: the room was given twice", room, err)
	}
	if writes := s.writes.Load(); writes != 1 {
		t.Errorf("the ledger was written %d times, want 1", writes)
	}
}

// TestRoomOfLateAnswersGrowsOld: however often an answer comes too late, its room is not given once it may have left the ledger.
func TestRoomOfLateAnswersGrowsOld(t *testing.T) {
	s, now := newStore(t, 1), time.Now()
	l := newLedger(s, "one")
	l.Now = func() time.Time { return now }
	for range 3 {
		late, refuse := context.WithCancel(t.Context())
		l.Now = func() time.Time { refuse(); return now }
		if room, err := l.Give(late, s.request(t)); err == nil && room.Subset == 0 {
			t.Fatalf("got %+v for a Pod that was refused", room)
		}
		now = now.Add(rules.LeaseFor / 2)
	}
	l.Now = func() time.Time { return now }
	if room, err := l.Give(t.Context(), s.request(t)); err != nil || room.Subset != 1 {
		t.Errorf("got %+v, error %v: of room that is too old to be given", room, err)
	}
}

// TestManyPodsTakeFewWrites gives room to a steady stream of Pods.
func TestManyPodsTakeFewWrites(t *testing.T) {
	s, began := newStore(t, 10000), time.Now()
	l := newLedger(s, "one")
	l.Now = func() time.Time { return began } // however slow the machine is
	entries := map[string]bool{}
	const pods = 600
	for range pods {
		room, err := l.Give(t.Context(), s.request(t))
		if err != nil || room.Subset != 0 || entries[room.Entry] {
			t.Fatalf("got %+v, error %v", room, err)
		}
		entries[room.Entry] = true
	}
	if writes, reads := s.writes.Load(), s.reads.Load(); writes > 20 || reads > 0 {
		t.Errorf("%d Pods took %d writes and %d reads, want 20 writes at most", pods, writes, reads)
	} else {
		t.Logf("%d Pods took %d writes", pods, writes)
	}
}

// TestRoomIsGivenOnceByAll is scenario 14 without an API server: 200 Pods at the same time, by two managers. The last places are given, too.
func TestRoomIsGivenOnceByAll(t *testing.T) {
	for _, most := range []int{1, 7, 100} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			s := newStore(t, most)
			ledgers := []*spread.Ledger{newLedger(s, "one"), newLedger(s, "two")}
			ctx, stop := context.WithCancel(t.Context())
			var running, giving sync.WaitGroup
			for _, l := range ledgers {
				running.Go(func() { _ = l.Start(ctx) })
				running.Go(func() { // as the events of the cache do
					for ctx.Err() == nil {
						l.NoteSpread(nil, s.spread(t))
						time.Sleep(5 * time.Millisecond)
					}
				})
			}
			var mu sync.Mutex
			given, entries := map[int]int{}, map[string]bool{}
			for i := range 200 {
				giving.Go(func() {
					room, err := ledgers[i%2].Give(t.Context(), s.request(t))
					mu.Lock()
					defer mu.Unlock()
					if err != nil || room.Entry != "" && entries[room.Entry] {
						t.Errorf("got %+v, error %v", room, err)
					}
					given[room.Subset]++
					entries[room.Entry] = true
				})
			}
			giving.Wait()
			stop()
			running.Wait()
			if given[0] != most || given[1] != 200-most {
				t.Errorf("given are %v, want %d in the first subset", given, most)
			}
			if left := s.spread(t).Status.SubsetStatuses[0]; len(left.CreatingPods) != most || left.MissingReplicas != 0 {
				t.Errorf("%d entries are left and room for %d, want %d and none", len(left.CreatingPods), left.MissingReplicas, most)
			}
			t.Logf("%d writes", s.writes.Load())
		})
	}
}

// TestADeadManagerLeavesRoomUnused lets a manager set room aside and be killed: what it held is given to nobody, and the others go on without it.
func TestADeadManagerLeavesRoomUnused(t *testing.T) {
	s := newStore(t, 40)
	dead, alive := newLedger(s, "dead"), newLedger(s, "alive")
	byDead := 0
	for range 7 {
		if room, err := dead.Give(t.Context(), s.request(t)); err != nil || room.Subset != 0 {
			t.Fatalf("got %+v, error %v", room, err)
		}
		byDead++
	}
	held := len(s.spread(t).Status.SubsetStatuses[0].CreatingPods) - byDead
	if held == 0 {
		t.Fatal("the one that is killed holds nothing")
	}
	first, began := 0, time.Now()
	for range 60 {
		room, err := alive.Give(t.Context(), s.request(t))
		if err != nil {
			t.Fatal(err)
		}
		if room.Subset == 0 {
			first++
		}
	}
	if want := 40 - byDead - held; first != want {
		t.Errorf("%d Pods are in the first subset, want %d: %d are given and %d are held", first, want, byDead, held)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the others waited for the one that is dead again and again: %s", took)
	}
}

// TestUnwantedRoomIsGivenBack lets a manager set room aside that no Pod asks for, and end.
func TestUnwantedRoomIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(*spread.Ledger){
		"nobody asks": func(l *spread.Ledger) {
			time.Sleep(rules.LeaseIdle)
			l.GiveBack(t.Context())
		},
		"it ends": func(l *spread.Ledger) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			_ = l.Start(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, 100)
			l := newLedger(s, "one")
			for range 4 {
				if _, err := l.Give(t.Context(), s.request(t)); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(s.spread(t).Status.SubsetStatuses[0].CreatingPods); n <= 4 {
				t.Fatalf("the ledger has %d entries for 4 Pods: nothing is set aside", n)
			}
			end(l)
			if left := s.spread(t).Status.SubsetStatuses[0]; len(left.CreatingPods) != 4 || left.MissingReplicas != 96 {
				t.Errorf("%d entries are left and room for %d, want 4 and 96", len(left.CreatingPods), left.MissingReplicas)
			}
		})
	}
}

// TestNoLimitTakesNothing: a Pod for which no subset has a limit costs nothing.
func TestNoLimitTakesNothing(t *testing.T) {
	s := newStore(t, 1)
	r := s.request(t)
	r.Spread.Spec.Subsets, r.Limits = r.Spread.Spec.Subsets[1:], r.Limits[1:]
	room, err := newLedger(s, "one").Give(t.Context(), r)
	if err != nil || room.Subset != 0 || room.Entry != "" || s.writes.Load()+s.reads.Load() > 0 {
		t.Errorf("got %+v, error %v, %d writes, %d reads", room, err, s.writes.Load(), s.reads.Load())
	}
}

// TestAnotherSpecIsReported: room is given by the spec that the limits are of.
func TestAnotherSpecIsReported(t *testing.T) {
	s := newStore(t, 1)
	r := s.request(t)
	r.Spread.Generation = 7
	if _, err := newLedger(s, "one").Give(t.Context(), r); err == nil {
		t.Error("room is given by an older spec")
	}
}

// TestTotalWithoutReplicas: a workload that does not say how many Pods it is to have, because no defaults were written when it was created, has one.
func TestTotalWithoutReplicas(t *testing.T) {
	s := newStore(t, 1)
	ws := s.request(t).Spread
	targets := &spread.Targets{Cached: s, Live: live{s}, Now: time.Now}
	for kind, o := range map[string]client.Object{"CloneSet": &v1beta1.CloneSet{}, "StatefulSet": &v1beta1.StatefulSet{}} {
		o.SetNamespace("shop")
		o.SetName("web")
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		ws.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: kind, Name: "web"}
		if total, err := targets.Total(t.Context(), ws); total != 1 || err != nil {
			t.Errorf("a %s has %d Pods, %v; want 1", kind, total, err)
		}
	}
}

func TestNumberAt(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"groups": []any{map[string]any{"replicas": int64(3)}, map[string]any{}}, "name": "x"}}
	for path, want := range map[string]int32{"spec.groups.0.replicas": 3, "spec.groups.1.replicas": 1, "spec.later": 1, "spec.groups.2.replicas": -1, "spec.name": -1, "spec.name.x": -1} {
		got, err := spread.NumberAt(object, path)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%s is %d, want %d", path, got, want)
		}
	}
}

// TestOwnersAreReadAgain: a ReplicaSet that is adopted after its first Pod is found below its new owner, if not at once.
func TestOwnersAreReadAgain(t *testing.T) {
	s, now := newStore(t, 1), time.Now()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "rs"}}
	if err := s.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	targets := &spread.Targets{Cached: s, Live: live{s}, Namespace: "kruise-system", Now: func() time.Time { return now }}
	controller := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs"}
	if above, err := targets.Above(t.Context(), "shop", controller); len(above) != 0 || err != nil {
		t.Fatalf("above are %v, %v", above, err)
	}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "above", Controller: new(true)}}
	if err := s.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if err := s.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10 * time.Minute)
	if above, err := targets.Above(t.Context(), "shop", controller); len(above) != 1 || above[0].Name != "web" || err != nil {
		t.Errorf("above are %v, %v; want Deployment web", above, err)
	}
}

// TestOwnersAreReadOnce follows a Pod to its Deployment, and to a kind that only the configuration knows.
func TestOwnersAreReadOnce(t *testing.T) {
	s := newStore(t, 1)
	owned := func(apiVersion, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "above", Controller: new(true)}}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "rs", OwnerReferences: owned("apps/v1", "Deployment", "web")}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", OwnerReferences: owned("example.com/v1", "Rollout", "roll")}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"}, Data: map[string]string{
		"WorkloadSpread_Watch_Custom_Workload_WhiteList": `{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game","subResources":[{"Group":"example.com","Kind":"Set"}]}]}`,
	}}
	for _, o := range []client.Object{set, deployment, config} {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	targets := &spread.Targets{Cached: s, Live: live{s}, Namespace: "kruise-system", Now: time.Now}
	controller := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs"}
	for range 3 {
		above, err := targets.Above(t.Context(), "shop", controller)
		if err != nil || len(above) != 2 || above[0].Name != "web" || above[1] != (rules.Reference{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Rollout"}, Name: "roll"}) {
			t.Fatalf("above are %v, error %v", above, err)
		}
	}
	if reads := s.reads.Load(); reads > 3 { // the ReplicaSet, the Deployment and the configuration
		t.Errorf("%d reads", reads)
	}
	kinds, err := targets.Custom(t.Context())
	if err != nil || len(kinds) != 1 || kinds[0].Kind != "Game" || kinds[0].SubResources[0].Kind != "Set" {
		t.Errorf("kinds are %v, error %v", kinds, err)
	}
	if _, err := targets.Above(t.Context(), "shop", &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "gone", UID: "x"}); err == nil {
		t.Error("an owner that is missing is passed over")
	}
}
