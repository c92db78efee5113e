package worker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestBackoff(t *testing.T) {
	l := Options(1).RateLimiter
	var got []time.Duration
	for range 40 { // an outage of half an hour
		got = append(got, l.When(reconcile.Request{}))
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 50 * time.Second}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := got[len(got)-1]; last != 50*time.Second {
		t.Errorf("in the end it waits for %s", last)
	}
}

// TestATriggerNeverBlocks: nobody reconciles, and of three calls one is answered later.
func TestATriggerNeverBlocks(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(Options(1).RateLimiter)
	defer queue.ShutDown()
	var trigger Trigger
	if err := trigger.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Name: "n"}
	for range 3 {
		trigger.After(0, key)
	}
	request, _ := queue.Get()
	queue.Done(request)
	if request.NamespacedName != key || queue.Len() != 0 {
		t.Errorf("got %s, and %d more, want one", request, queue.Len())
	}
	trigger.After(0, key)
	if queue.Len() != 1 {
		t.Error("it does not wake the controller again")
	}
}

func TestDelaysUseNoTokens(t *testing.T) {
	limiter := rate.NewLimiter(rate.Every(time.Hour), 1)
	if wait := Delay(limiter); wait != 0 {
		t.Errorf("the first write waits for %s", wait)
	}
	for range 3 {
		if wait := Delay(limiter); wait < 59*time.Minute || wait > time.Hour {
			t.Errorf("the second write waits for %s, want an hour", wait)
		}
	}
}

func TestIsOlder(t *testing.T) {
	pod := func(uid, version string) *corev1.Pod {
		p := &corev1.Pod{}
		p.UID, p.ResourceVersion = "u", version
		if uid != "" {
			p.UID = "other"
		}
		return p
	}
	for name, tc := range map[string]struct {
		cached *corev1.Pod
		want   bool
	}{
		"what was before the write":     {pod("", "99"), true},
		"what was written":              {pod("", "100"), false},
		"what came after":               {pod("", "101"), false},
		"another object of the name":    {pod("other", "99"), false},
		"a version that is not ordered": {pod("", "x"), false},
	} {
		if got := IsOlder(tc.cached, pod("", "100")); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
