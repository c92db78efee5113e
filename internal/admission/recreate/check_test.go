package recreate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	rules "github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

func number[T int32 | int64](n T) *T { return &n }

// TestWhatMayChange: only how long a request is kept, and a deadline where there was none.
func TestWhatMayChange(t *testing.T) {
	request := func() *v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.RecreatePodUID: "u"}}}
		r.Spec.PodName, r.Spec.TTLSecondsAfterFinished = "p", number(int32(60))
		return r
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	type change = func(*v1beta1.ContainerRecreateRequest)
	same := func(*v1beta1.ContainerRecreateRequest) {}
	graced := func(r *v1beta1.ContainerRecreateRequest) { rules.BeginGrace(&r.Status, noon) }
	cases := map[string]struct {
		before, after change
		older         bool
		want          string
	}{
		"nothing":                          {same, same, false, ""},
		"a finalizer":                      {same, func(r *v1beta1.ContainerRecreateRequest) { r.Finalizers = []string{"f"} }, false, ""},
		"kept for a shorter time":          {same, func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = number(int32(5)) }, false, ""},
		"kept for longer":                  {same, func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = number(int32(90)) }, false, "spec of ContainerRecreateRequest is immutable: make another request"},
		"a deadline":                       {same, func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = number(int64(9)) }, false, ""},
		"a deadline that nothing can meet": {same, func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = number(int64(2)) }, false, "activeDeadlineSeconds can not be less than 3s"},
		"another deadline": {func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = number(int64(9)) },
			func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = number(int64(99)) }, false, "spec of ContainerRecreateRequest is immutable: make another request"},
		"another Pod's UID":                {same, func(r *v1beta1.ContainerRecreateRequest) { r.Labels[keys.RecreatePodUID] = "v" }, false, "label crr.apps.kruise.io/pod-uid of ContainerRecreateRequest is immutable"},
		"the grace begins":                 {same, graced, true, ""},
		"the grace is taken back":          {graced, same, true, "annotation crr.apps.kruise.io/unready-acquired of ContainerRecreateRequest is immutable"},
		"the grace begins at another time": {graced, func(r *v1beta1.ContainerRecreateRequest) { rules.BeginGrace(&r.Status, noon.Add(time.Hour)) }, true, "annotation crr.apps.kruise.io/unready-acquired of ContainerRecreateRequest is immutable"},
		"a status in the newer version":    {graced, same, false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := request(), request()
			tc.before(before)
			tc.after(after)
			got := ""
			if err := kept(before, after, tc.older); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("kept() = %q, want %q", got, tc.want)
			}
		})
	}
}
