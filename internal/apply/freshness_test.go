package apply

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFreshness(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithKind("Pod")
	claims := corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	type world struct {
		*bench
		caches map[schema.GroupVersionKind]string
	}
	cases := map[string]struct {
		happens func(*world)
		want    Freshness
	}{
		"what was never written to can be seen in the cache": {
			happens: func(*world) {},
			want:    Fresh,
		},
		"a cache that is older than the last write is not looked at": {
			happens: func(w *world) { w.noteVersion(w.owner.UID, pods, "100"); w.caches[pods] = "99" },
			want:    Stale,
		},
		"versions are numbers, not text": {
			happens: func(w *world) { w.noteVersion(w.owner.UID, pods, "100"); w.caches[pods] = "99999" },
			want:    Fresh,
		},
		"the newest of several writes counts": {
			happens: func(w *world) {
				w.noteVersion(w.owner.UID, pods, "100")
				w.noteVersion(w.owner.UID, pods, "98")
				w.caches[pods] = "99"
			},
			want: Stale,
		},
		"each kind has a cache of its own": {
			happens: func(w *world) {
				w.noteVersion(w.owner.UID, pods, "100")
				w.noteVersion(w.owner.UID, claims, "101")
				w.caches[pods], w.caches[claims] = "200", "100"
			},
			want: Stale,
		},
		"a cache that does not say how far it has come is too old": {
			happens: func(w *world) { w.noteVersion(w.owner.UID, pods, "100") },
			want:    Stale,
		},
		"a cache that is late for ten seconds is gone around": {
			happens: func(w *world) { w.noteVersion(w.owner.UID, pods, "100"); w.cluster.Sleep(10 * time.Second) },
			want:    Unknown,
		},
		"a cache has its ten seconds after the last write of a long pass, not after the first": {
			happens: func(w *world) {
				w.noteVersion(w.owner.UID, pods, "100")
				w.cluster.Sleep(9 * time.Second)
				w.noteVersion(w.owner.UID, pods, "101")
				w.cluster.Sleep(9 * time.Second)
				w.caches[pods] = "100"
			},
			want: Stale,
		},
		"a cache that is late for the last write of a long pass is gone around": {
			happens: func(w *world) {
				w.noteVersion(w.owner.UID, pods, "100")
				w.cluster.Sleep(time.Minute)
				w.noteVersion(w.owner.UID, pods, "101")
				w.cluster.Sleep(10 * time.Second)
				w.caches[pods] = "100"
			},
			want: Unknown,
		},
		"an older version that a pass reads live gives a late cache no more time": {
			happens: func(w *world) {
				w.noteVersion(w.owner.UID, pods, "100")
				w.cluster.Sleep(10 * time.Second)
				w.noteVersion(w.owner.UID, pods, "90")
			},
			want: Unknown,
		},
		"after a live look the cache has as long again": {
			happens: func(w *world) {
				w.noteVersion(w.owner.UID, pods, "100")
				w.cluster.Sleep(10 * time.Second)
				w.NoteReadLive(w.owner.UID)
			},
			want: Stale,
		},
		"a write in doubt asks for a live look however new the cache is": {
			happens: func(w *world) { w.noteUnknown(w.owner.UID); w.caches[pods] = "999" },
			want:    Unknown,
		},
		"which ends the doubt": {
			happens: func(w *world) { w.noteUnknown(w.owner.UID); w.NoteReadLive(w.owner.UID) },
			want:    Fresh,
		},
		"a doubt is not forgotten because a look that failed was on its way": {
			happens: func(w *world) {
				w.noteUnknown(w.owner.UID)
				if _, err := w.Freshness(context.Background(), w.owner); err != nil {
					panic(err)
				}
			},
			want: Unknown,
		},
		"an owner that is gone is forgotten": {
			happens: func(w *world) { w.noteVersion(w.owner.UID, pods, "100"); w.Forget(w.owner) },
			want:    Fresh,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{bench: newBench(t), caches: map[schema.GroupVersionKind]string{}}
			w.Seen = func(_ context.Context, kind schema.GroupVersionKind) (string, error) { return w.caches[kind], nil }
			tc.happens(w)
			got, err := w.Freshness(t.Context(), w.owner)
			if err != nil || got != tc.want {
				t.Errorf("got %v and error %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestWhatWasSeenLiveIsNotForgottenForAnOlderCache(t *testing.T) {
	b := newBench(t)
	p := b.stored(t, "a")
	live := b.Tracked(b.owner.UID, reading{b.cluster.Connect("controller", nil)})
	var list corev1.PodList
	if err := live.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var got []Freshness
	for _, b.seen = range []string{"1", p.ResourceVersion} {
		fresh, err := b.Freshness(t.Context(), b.owner)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fresh)
	}
	if diff := cmp.Diff([]Freshness{Stale, Fresh}, got); diff != "" {
		t.Errorf("freshness with an older and an equal cache (-want +got):\n%s", diff)
	}
}

// reading is a reader of which only the methods of client.Reader show.
type reading struct{ client.Reader }

// TestSeriesOfAnOwnerThatIsGone: no metric is kept of a CloneSet that is gone.
func TestSeriesOfAnOwnerThatIsGone(t *testing.T) {
	b := newBench(t)
	b.owner.Name = "gone"
	b.noteVersion(b.owner.UID, corev1.SchemeGroupVersion.WithKind("Pod"), "100")
	b.cluster.Sleep(lateAfter)
	series := func() int {
		found := make(chan prometheus.Metric, 100)
		leakedExpectations.Collect(found)
		return len(found)
	}
	before := series()
	if _, err := b.Freshness(t.Context(), b.owner); err != nil {
		t.Fatal(err)
	}
	late := series() - before
	b.Forget(b.owner)
	if gone := series() - before; late != 1 || gone != 0 {
		t.Errorf("a late CloneSet has %d series, and %d once it is gone; want 1 and 0", late, gone)
	}
}

// TestANameThatMayStillComeIsUsedAgain: a create whose answer was lost may happen later, and must then meet a Pod of its name.
func TestANameThatMayStillComeIsUsedAgain(t *testing.T) {
	b := newBench(t)
	b.noteSent(b.owner.UID, "sent")
	for _, name := range []string{"sent", "gone"} {
		b.NoteFormer(b.owner.UID, name)
	}
	first := b.FormerNames(b.owner.UID)
	b.cluster.Sleep(mayLand)
	later := b.FormerNames(b.owner.UID)
	if diff := cmp.Diff([][]string{{"gone"}, {"sent", "gone"}}, [][]string{first, later}); diff != "" {
		t.Errorf("names that new Pods don't get, at first and a minute later (-want +got):\n%s", diff)
	}
}
