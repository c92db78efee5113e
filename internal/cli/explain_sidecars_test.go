package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestWhyNotInjected checks what is said of a Pod without the sidecars of a SidecarSet that selects it.
func TestWhyNotInjected(t *testing.T) {
	for name, tc := range map[string]struct {
		paused     bool
		after      time.Duration
		says, free string
	}{
		"older than the SidecarSet": {after: time.Minute, says: "created before sidecarset/mesh, and", free: "recreate Pod web-a"},
		"injection is paused":       {paused: true, says: "injectionStrategy is paused", free: "spec.injectionStrategy.paused false in sidecarset/mesh"},
		"of the same second":        {says: "created before sidecarset/mesh, or in the same second, and", free: "recreate Pod web-a"},
		"no webhook":                {after: -time.Minute, says: "webhook of kruise-manager was not asked", free: "MutatingWebhookConfiguration"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", CreationTimestamp: metav1.NewTime(noon.Add(tc.after))}}
			set.Spec.InjectionStrategy.Paused = tc.paused
			set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "mesh"}}}
			p := memberOf("web-a", "web-1", "web:v1", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon) })
			if hasSidecars(p, set) {
				t.Fatal("it has the sidecars")
			}
			if r := whyNotInjected(set, p); !strings.Contains(r.Why, tc.says) || !strings.Contains(r.Free, tc.free) {
				t.Errorf("it is %+v, want %q, freed by %q", r, tc.says, tc.free)
			}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "mesh"})
			if !hasSidecars(p, set) {
				t.Error("it has not the sidecars that it has")
			}
		})
	}
}
