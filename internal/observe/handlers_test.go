package observe

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// awaitSynced waits until a handler was told of what was there.
func awaitSynced(t *testing.T, handle cache.ResourceEventHandlerRegistration) {
	t.Helper()
	select {
	case <-handle.HasSyncedChecker().Done():
	case <-time.After(10 * time.Second):
		t.Fatal("a handler has not been told of all Pods after 10 s")
	}
	if !handle.HasSynced() {
		t.Error("a handler that was told of all Pods has not synced")
	}
}

// TestHandlersJoin adds handlers before an informer runs, while it does and when it is stopped, and takes one away.
func TestHandlersJoin(t *testing.T) {
	informer, events := streamed(t)
	add := func() (*record, cache.ResourceEventHandlerRegistration) {
		told := &record{news: make(chan string, 10)}
		handle, err := informer.AddEventHandler(told)
		if err != nil {
			t.Fatal(err)
		}
		return told, handle
	}
	early, first := add()
	if first.HasSynced() {
		t.Error("a handler has synced before its informer runs")
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	early.expect(t, "add first of o1")
	awaitSynced(t, first)

	handlers := informer.(podInformer).handlers
	handlers.telling.Lock() // one that is removed before it has joined
	gone, never := add()
	never.(*podRegistration).removed = true
	handlers.telling.Unlock()
	late, second := add()
	later, third := add()
	awaitSynced(t, second)
	awaitSynced(t, third)
	for _, told := range []*record{late, later} {
		told.expect(t, "add first of o1")
	}
	changed := owned("first", "o2")
	changed.ResourceVersion = "3"
	events.Modify(changed)
	for _, told := range []*record{early, late, later} {
		told.expect(t, "update first of o1 to o2")
	}

	if err := informer.RemoveEventHandler(second); err != nil {
		t.Fatal(err)
	}
	events.Delete(changed)
	for _, told := range []*record{early, later} {
		told.expect(t, "delete first of o2")
	}
	if len(gone.news)+len(late.news)+len(early.news)+len(later.news) > 0 {
		t.Error("handlers were told of more")
	}

	stop()
	running.Wait()
	if _, err := informer.AddEventHandler(early); err == nil {
		t.Error("a stopped informer takes a handler")
	}
}

// lastOf keeps the version of each Pod that a handler was last told of.
type lastOf struct {
	mu       sync.Mutex
	versions map[string]string
}

func (l *lastOf) note(object any, gone bool) {
	p := object.(*corev1.Pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[p.Name] = p.ResourceVersion
	if gone {
		delete(l.versions, p.Name)
	}
}

func (l *lastOf) OnAdd(object any, _ bool) { l.note(object, false) }
func (l *lastOf) OnUpdate(_, after any)    { l.note(after, false) }
func (l *lastOf) OnDelete(object any)      { l.note(object, true) }

// TestHandlersJoinWhilePodsChange: whenever a handler joins, it knows in the end what is there.
func TestHandlersJoinWhilePodsChange(t *testing.T) {
	informer, events := streamed(t)
	go informer.RunWithContext(t.Context())
	const pods, changes = 20, 400
	var changing sync.WaitGroup
	changing.Go(func() {
		for number := range changes {
			p := owned(fmt.Sprint("p", number%pods), "o1")
			p.ResourceVersion = fmt.Sprint(10 + number)
			switch number / pods % 4 {
			case 0:
				events.Add(p)
			case 3:
				events.Delete(p)
			default:
				events.Modify(p)
			}
		}
		for number := range pods {
			p := owned(fmt.Sprint("p", number), "o1")
			p.ResourceVersion = fmt.Sprint(1000 + number)
			events.Action(watch.Added, p)
		}
	})
	var all []*lastOf
	for range 30 {
		l := &lastOf{versions: map[string]string{}}
		all = append(all, l)
		handle, err := informer.AddEventHandler(l)
		if err != nil {
			t.Fatal(err)
		}
		awaitSynced(t, handle)
		time.Sleep(time.Millisecond)
	}
	changing.Wait()
	for at, l := range all {
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			l.mu.Lock()
			known := len(l.versions) == pods+1
			for number := range pods {
				known = known && l.versions[fmt.Sprint("p", number)] == fmt.Sprint(1000+number)
			}
			l.mu.Unlock()
			if known {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("handler %d knows %v", at, l.versions)
			}
		}
	}
}

// idle is a handler that does next to nothing.
type idle struct{ told int }

func (i *idle) OnAdd(object any, _ bool) {
	_ = ControllerKey(object.(*corev1.Pod))
	i.told++
}
func (i *idle) OnUpdate(any, any) {}
func (i *idle) OnDelete(any)      {}

// BenchmarkJoin adds the handlers of a manager that begins to lead.
func BenchmarkJoin(b *testing.B) {
	const pods, handlers = 20_000, 18
	transform := SlimPod("", &AnnotationKeys{})
	informer := NewInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
	for number := range pods {
		p := owned(fmt.Sprint(number), "o")
		p.UID = types.UID(p.Name)
		p.Labels = map[string]string{"number": p.Name}
		p.CreationTimestamp = metav1.NewTime(time.Unix(1_800_000_000, 0))
		stored, err := transform(p)
		if err != nil {
			b.Fatal(err)
		}
		if err := informer.GetIndexer().(podIndexer).Indexer.Add(stored); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		var added []*podRegistration
		for range handlers {
			handle, err := informer.AddEventHandler(&idle{})
			if err != nil {
				b.Fatal(err)
			}
			added = append(added, handle.(*podRegistration))
		}
		for _, r := range added {
			<-r.joined
			if told := r.ResourceEventHandler.(*idle).told; told != pods {
				b.Fatalf("a handler was told of %d Pods", told)
			}
			if err := informer.RemoveEventHandler(r); err != nil {
				b.Fatal(err)
			}
		}
	}
}
