package observe

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// TestPodsOfACacheAreNotCopied: what is read is what the cache of a manager holds, by its own index.
func TestPodsOfACacheAreNotCopied(t *testing.T) {
	of := func(namespace, name, owner string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: cloneSets.GroupVersion().String(), Kind: cloneSets.Kind, Name: owner, UID: types.UID(owner), Controller: new(true)},
		}}}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), meta.RESTScopeNamespace)
	c, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: clientgoscheme.Scheme, Mapper: mapper,
		NewInformer: func(
			_ toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			var list runtime.Object = &appsv1.ControllerRevisionList{}
			if _, isPod := kind.(*corev1.Pod); isPod {
				list = &corev1.PodList{Items: []corev1.Pod{of("a", "1", "web"), of("a", "2", "other"), of("b", "3", "web")}}
			}
			return NewInformer(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					return watch.NewFake(), nil
				},
			}, noWatchLists{}), kind, resync, indexers)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := AddIndexes(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r, err := Cached(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- c.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	read := func(r Reader) *corev1.Pod {
		t.Helper()
		pods, err := r.Pods(t.Context(), "a", "web")
		if err != nil || len(pods) != 1 || pods[0].Name != "1" {
			t.Fatalf("read %d Pods, want a/1; error %v", len(pods), err)
		}
		return pods[0]
	}
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache is not filled")
	}
	for name, tc := range map[string]struct {
		reader Reader
		same   bool
	}{
		"held":   {r, true},
		"listed": {Reader{Reader: c, Indexed: true}, false},
	} {
		if first, second := read(tc.reader), read(tc.reader); (first == second) != tc.same {
			t.Errorf("%s: two reads return the same Pod: %t, want %t", name, !tc.same, tc.same)
		}
	}
}

// noWatchLists is a client that can't list by a watch.
type noWatchLists struct{}

// IsWatchListSemanticsUnSupported reports that it can't.
func (noWatchLists) IsWatchListSemanticsUnSupported() bool { return true }
