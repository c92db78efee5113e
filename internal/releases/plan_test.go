package releases

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// TestWhoLetsAWorkloadGo: a BatchRelease of a Rollout must not unfreeze a template that the Rollout may not have judged yet.
func TestWhoLetsAWorkloadGo(t *testing.T) {
	frozen := func(update string) release.Workload {
		return release.Workload{Frozen: true, Settled: true, Update: update}
	}
	for name, tc := range map[string]struct {
		told  string
		seen  release.Workload
		alone bool
		want  bool
	}{
		"the template that it was told of":            {"v2", frozen("v2"), false, true},
		"one that came since":                         {"v2", frozen("v3"), false, false},
		"one that came since and that nobody minds":   {"", frozen("v3"), true, true},
		"one that came since, and goes on already":    {"v2", release.Workload{Settled: true, Update: "v3"}, false, true},
		"a template that is not known yet":            {"v2", release.Workload{Frozen: true, Update: "v2"}, false, false},
		"any template, before it was told":            {"", frozen("v2"), false, false},
		"any template that is not known yet, by none": {"", release.Workload{Frozen: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1beta1.BatchRelease{}
			if tc.told != "" {
				b.Annotations = map[string]string{keys.ResumedRevision: tc.told}
			}
			if !tc.alone {
				b.OwnerReferences = []metav1.OwnerReference{{Kind: "Rollout", Name: "demo", Controller: ptr.To(true)}}
			}
			if got := LetsGo(b, steer.Facts{Workload: tc.seen}); got != tc.want {
				t.Errorf("lets go: %t, want %t", got, tc.want)
			}
		})
	}
}
