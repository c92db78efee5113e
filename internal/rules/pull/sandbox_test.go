package pull

import (
	"testing"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestWhatATenantTellsTheRuntimeIsForItsOwnPulls has jobs ask for tags of one repository, one after the other.
func TestWhatATenantTellsTheRuntimeIsForItsOwnPulls(t *testing.T) {
	ask := func(namespace, says, tag string) Want {
		return wants(newJob(namespace+says, func(j *v1beta1.ImagePullJob) {
			j.Namespace = namespace
			if says != "" {
				j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"says": says}}
			}
		}), "nginx", tag)
	}
	for name, tc := range map[string]struct {
		jobs []Want
		want string // of tag 1
	}{
		"one job":                                   {[]Want{ask("a", "x", "1")}, "x"},
		"one that says nothing":                     {[]Want{ask("a", "", "1")}, ""},
		"a later one of the same tenant":            {[]Want{ask("a", "x", "1"), ask("a", "y", "1")}, "y"},
		"one of another tenant":                     {[]Want{ask("a", "x", "1"), ask("b", "y", "1")}, ""},
		"one of another tenant that says nothing":   {[]Want{ask("a", "x", "1"), ask("b", "", "1")}, ""},
		"one of another tenant that says the same":  {[]Want{ask("a", "x", "1"), ask("b", "x", "1")}, "x"},
		"the first one asks again after another":    {[]Want{ask("a", "x", "1"), ask("b", "y", "1"), ask("a", "x", "1")}, ""},
		"another tenant's, for another tag":         {[]Want{ask("a", "x", "1"), ask("b", "y", "2")}, "x"},
		"another tenant's, for another tag, before": {[]Want{ask("b", "y", "2"), ask("a", "", "1")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &v1beta1.NodeImage{}
			for _, job := range tc.jobs {
				n = mustAsk(t, job, n)
			}
			image := n.Spec.Images["nginx"]
			if image.SandboxConfig != nil {
				t.Errorf("the whole repository has %v", image.SandboxConfig)
			}
			got := ""
			if s := image.Tags[0].SandboxConfig; s != nil {
				got = s.Labels["says"]
			}
			if got != tc.want {
				t.Errorf("the pull says %q, want %q", got, tc.want)
			}
		})
	}
}
