package releases

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// TestWhoLetsAWorkloadGo: a BatchRelease of a Rollout must not unfreeze a template that the Rollout may not have judged yet.
func TestWhoLetsAWorkloadGo(t *testing.T) {
	begun := v1beta1.BatchReleaseStatus{
		BatchReleaseBaseStatus: v1beta1.BatchReleaseBaseStatus{StableRevision: "v1", UpdateRevision: "v2"},
	}
	frozen := func(update string) release.Workload {
		return release.Workload{Frozen: true, Settled: true, Update: update}
	}
	for name, tc := range map[string]struct {
		status v1beta1.BatchReleaseStatus
		seen   release.Workload
		alone  bool
		want   bool
	}{
		"the new template, when all steps are done":    {begun, frozen("v2"), false, true},
		"the old template, when it was put back":       {begun, frozen("v1"), false, true},
		"the old template, by another name":            {begun, release.Workload{Frozen: true, Settled: true, Update: "v1b", RolledBack: true}, false, true},
		"a third template":                             {begun, frozen("v3"), false, false},
		"a third template that nobody minds":           {begun, frozen("v3"), true, true},
		"a third template that goes on already":        {begun, release.Workload{Settled: true, Update: "v3"}, false, true},
		"a template that is not known yet":             {begun, release.Workload{Frozen: true, Update: "v2"}, false, false},
		"any template, where no Pod was updated yet":   {v1beta1.BatchReleaseStatus{}, frozen("v2"), false, false},
		"any template, by itself, before it has begun": {v1beta1.BatchReleaseStatus{}, frozen("v2"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1beta1.BatchRelease{Status: tc.status}
			if !tc.alone {
				b.OwnerReferences = []metav1.OwnerReference{{Kind: "Rollout", Name: "demo", Controller: ptr.To(true)}}
			}
			if got := LetsGo(b, steer.Facts{Workload: tc.seen}); got != tc.want {
				t.Errorf("lets go: %t, want %t", got, tc.want)
			}
		})
	}
}
