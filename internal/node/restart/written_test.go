package restart

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestWrittenIsReadUntilTheCacheHasIt: a cache that lags behind must not have the worker decide again what it has decided.
func TestWrittenIsReadUntilTheCacheHasIt(t *testing.T) {
	pod := types.NamespacedName{Namespace: "ns", Name: "p"}
	version := func(uid types.UID, version string) *v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: uid, ResourceVersion: version}}
		r.Spec.PodName = "p"
		return r
	}
	for name, tc := range map[string]struct {
		uid    types.UID
		cached string
		want   string
	}{
		"the cache is behind":          {"u", "9", "10"},
		"the cache has it":             {"u", "10", "10"},
		"the cache has a later one":    {"u", "11", "11"},
		"another one of the same name": {"other", "9", "9"},
	} {
		t.Run(name, func(t *testing.T) {
			var w written
			w.add(version("u", "10"))
			if got := w.newest(pod, version(tc.uid, tc.cached)); got.ResourceVersion != tc.want || got.UID != tc.uid {
				t.Errorf("got version %s of %s, want %s", got.ResourceVersion, got.UID, tc.want)
			}
		})
	}

	var w written
	w.add(version("u", "10"))
	w.newest(pod, version("u", "10"))
	if len(w.byPod[pod]) > 0 {
		t.Error("it is kept although the cache has it")
	}
	w.add(version("u", "12"))
	w.drop(pod)
	if len(w.byPod) > 0 {
		t.Error("it is kept although the Pod has no requests any more")
	}
}
