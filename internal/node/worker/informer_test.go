package worker

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// TestPodsAreListedBeforeTheyAreWatched, and other kinds are not listed: their watch begins with all objects.
func TestPodsAreListedBeforeTheyAreWatched(t *testing.T) {
	for _, test := range []struct {
		name string
		kind runtime.Object
		list runtime.Object
		want []string
	}{
		{"Pods", &corev1.Pod{}, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, []string{"list from 0", "watch from 7"}},
		{"Nodes", &corev1.Node{}, &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, []string{"watch, beginning with all"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				note := func(request string) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, request)
				}
				informer := NewInformer(&cache.ListWatch{
					ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
						note("list from " + o.ResourceVersion)
						return test.list, nil
					},
					WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
						if o.SendInitialEvents != nil && *o.SendInitialEvents {
							note("watch, beginning with all")
						} else {
							note("watch from " + o.ResourceVersion)
						}
						return watch.NewFake(), nil
					},
				}, test.kind, 0, cache.Indexers{})
				ctx, cancel := context.WithCancel(t.Context())
				go informer.RunWithContext(ctx)
				synctest.Wait()
				cancel()
				synctest.Wait()
				if !slices.Equal(got, test.want) {
					t.Errorf("requests are %q, and should be %q", got, test.want)
				}
			})
		})
	}
}
