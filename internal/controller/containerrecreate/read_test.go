package containerrecreate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// TestNoRequestEndsByACacheThatIsLate: the caches of Pods and of requests are not of the same moment, and the end of a request is never taken back.
func TestNoRequestEndsByACacheThatIsLate(t *testing.T) {
	of := func(uid types.UID) client.Reader {
		b := fake.NewClientBuilder()
		if uid != "" {
			b = b.WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid}})
		}
		return b.Build()
	}
	for name, tc := range map[string]struct{ cached, live, want types.UID }{
		"the cache does not have the Pod yet":           {"", "new", "new"},
		"the cache has the one before":                  {"old", "new", "new"},
		"the Pod is gone":                               {"", "", ""},
		"another Pod has its name":                      {"other", "other", "other"},
		"the cache has it, which is as good as looking": {"new", "", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1beta1.ContainerRecreateRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Labels: map[string]string{keys.RecreatePodUID: "new"}},
			}
			r.Spec.PodName = "p"
			cached := observe.Reader{Reader: of(tc.cached)}
			v, err := read(t.Context(), loop.Reads{Reader: cached, Live: of(tc.live)}, r)
			if err != nil {
				t.Fatal(err)
			}
			var got types.UID
			if v.Pod != nil {
				got = v.Pod.UID
			}
			if got != tc.want {
				t.Errorf("the Pod is %q, want %q", got, tc.want)
			}
		})
	}
}
