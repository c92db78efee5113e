package retry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestPauses(t *testing.T) {
	l := Limiter()
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
