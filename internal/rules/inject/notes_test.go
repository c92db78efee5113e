package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// TestTwinsOfAPodWithAnUnreadableNote: which container works is written anew, and whole, or the Pod would never be seen to hold its sidecars.
func TestTwinsOfAPodWithAnUnreadableNote(t *testing.T) {
	for name, note := range map[string]string{"null": "null", "a part can be read": `{"envoy":"envoy-2","other":7}`, "nothing can be read": "?"} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{keys.SidecarSetWorkingHotUpgradeContainer: note}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "envoy-1"}, {Name: "envoy-2"}, {Name: "app"}}},
			}
			hot := compiled(t, "set", `{containers: [{name: envoy, image: v1, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}]}`)
			if _, err := Into(p, []*Sidecars{hot}, Options{Now: now}); err != nil {
				t.Fatal(err)
			}
			if working, err := sidecar.WorkingIn(p); err != nil || working["envoy"] != "envoy-1" || p.Spec.Containers[0].Image != "v1" {
				t.Errorf("%v works (%v), and the first container runs %s", working, err, p.Spec.Containers[0].Image)
			}
		})
	}
}
