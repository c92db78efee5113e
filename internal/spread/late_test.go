package spread_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestAPodThatIsGoneMakesRoomAtOnce: the controller has not counted yet that a Pod is gone when another one comes in its place.
func TestAPodThatIsGoneMakesRoomAtOnce(t *testing.T) {
	s := newStore(t, 1)
	l := newLedger(s, "one")
	give := func() int {
		t.Helper()
		room, err := l.Give(t.Context(), s.request(t))
		if err != nil {
			t.Fatal(err)
		}
		return room.Subset
	}
	p := s.podOf(t, l)
	if got := give(); got != 1 {
		t.Errorf("a second Pod is in subset %d: the first one is full", got)
	}
	if err := s.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l.NotePod(p, nil)
	if got := give(); got != 0 {
		t.Errorf("the Pod in the place of the first one is in subset %d", got)
	}
}

// wanted is how many Pods a controller is to have.
type wanted int32

func (w wanted) Lately(context.Context) (int32, bool) { return int32(w), true }
func (w wanted) Now(context.Context) (int32, bool)    { return int32(w), true }

// TestAReplacementMayBeEarlierThanTheNews: a controller has heard that a Pod is gone, and the manager has not yet when it is asked about the next one.
func TestAReplacementMayBeEarlierThanTheNews(t *testing.T) {
	for name, tc := range map[string]struct {
		wants wanted
		gone  bool // the news come
		want  int
		waits bool
	}{
		"the place of the Pod that is gone is given": {wants: 1, gone: true, want: 0},
		"a workload that lacks Pods has no news":     {wants: 2, want: 1},
		"news that never come are not waited for":    {wants: 1, want: 1, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, 1)
			l := newLedger(s, "one")
			p := s.podOf(t, l)
			if err := s.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if tc.gone {
				time.AfterFunc(100*time.Millisecond, func() { l.NotePod(p, nil) })
			}
			r := s.request(t)
			r.Wanted = tc.wants
			began := time.Now()
			room, err := l.Give(t.Context(), r)
			if err != nil || room.Subset != tc.want {
				t.Errorf("got %+v, error %v, want subset %d", room, err, tc.want)
			}
			if took := time.Since(began); !tc.gone && (took > 500*time.Millisecond) != tc.waits {
				t.Errorf("it took %s", took)
			}
			began = time.Now()
			if room, err = l.Give(t.Context(), r); tc.waits && (err != nil || room.Subset != 1 || time.Since(began) > 200*time.Millisecond) {
				t.Errorf("the next Pod got %+v, error %v, after %s: one has waited in vain just now", room, err, time.Since(began))
			}
		})
	}
}

// TestRoomThatIsHeldIsNoPod: who has set room aside for Pods to come does not take it for Pods that are there.
func TestRoomThatIsHeldIsNoPod(t *testing.T) {
	s := newStore(t, 1)
	ws := s.spread(t)
	ws.Spec.Subsets[1].MaxReplicas = new(intstr.FromInt32(50))
	if err := s.Update(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	l := newLedger(s, "one")
	s.podOf(t, l)
	began := time.Now()
	for range 3 { // the second one sets room aside for the third one
		r := s.request(t)
		r.Wanted = wanted(4)
		if room, err := l.Give(t.Context(), r); err != nil || room.Subset != 1 {
			t.Fatalf("got %+v, error %v", room, err)
		}
	}
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("three Pods that are missing took %s: they waited for news of others", took)
	}
}
