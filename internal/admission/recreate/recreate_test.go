package recreate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	rules "github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// TestWhatMayChange: only how long a request is kept, and a deadline where there was none.
func TestWhatMayChange(t *testing.T) {
	request := func() *v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.RecreatePodUID: "u"}}}
		r.Spec.PodName, r.Spec.TTLSecondsAfterFinished = "p", new(int32(60))
		return r
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	type object = v1beta1.ContainerRecreateRequest
	type change = func(*object)
	const (
		ofSpec  = "spec of ContainerRecreateRequest is immutable: make another request"
		ofGrace = "annotation crr.apps.kruise.io/unready-acquired of ContainerRecreateRequest is immutable"
	)
	same := func(*object) {}
	graced := func(r *object) { rules.BeginGrace(&r.Status, noon) }
	gracedLater := func(r *object) { rules.BeginGrace(&r.Status, noon.Add(time.Hour)) }
	deadline := func(seconds int64) change { return func(r *object) { r.Spec.ActiveDeadlineSeconds = &seconds } }
	ttl := func(seconds int32) change { return func(r *object) { r.Spec.TTLSecondsAfterFinished = &seconds } }
	cases := map[string]struct {
		before, after change
		older         bool
		want          string
	}{
		"nothing":                 {same, same, false, ""},
		"a finalizer":             {same, func(r *object) { r.Finalizers = []string{"f"} }, false, ""},
		"kept for a shorter time": {same, ttl(5), false, ""},
		"kept for longer":         {same, ttl(90), false, ofSpec},
		"a deadline":              {same, deadline(9), false, ""},
		"another deadline":        {deadline(9), deadline(99), false, ofSpec},
		"no deadline":             {deadline(9), same, false, ofSpec},
		"another Pod's UID": {
			same, func(r *object) { r.Labels[keys.RecreatePodUID] = "v" }, false,
			"label crr.apps.kruise.io/pod-uid of ContainerRecreateRequest is immutable",
		},
		"the grace begins":                 {same, graced, true, ""},
		"the grace is taken back":          {graced, same, true, ofGrace},
		"the grace begins at another time": {graced, gracedLater, true, ofGrace},
		"a status in the newer version":    {graced, same, false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := request(), request()
			tc.before(before)
			tc.after(after)
			got := ""
			if err := keeps(before, after, tc.older); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("keeps() = %q, want %q", got, tc.want)
			}
		})
	}
}
