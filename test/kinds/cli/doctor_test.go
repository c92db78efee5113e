package cli

import (
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/internal/cli/doctor"
)

// TestDoctor looks at an installation whose managers run beside the cluster, without Deployments and Leases: that is all that is amiss.
func TestDoctor(t *testing.T) {
	e := newEnv(t)
	e.ends(1, "there is no Deployment kruise-controller-manager", "doctor")
	var found []doctor.Finding
	e.encoded(&found, "doctor")
	for _, f := range found {
		if strings.Contains(f.What, " cli-") && !strings.Contains(f.What, e.Namespace+"/") {
			continue // of another test
		}
		if !strings.Contains(f.What, "Deployment") && !strings.Contains(f.What, "Lease") {
			t.Errorf("it finds %+v", f)
		}
	}
	e.ends(1, "could not be read", "doctor", "--as", "nobody")
}

// TestDoctorTakeover counts what is there, and finds what takes effect with a takeover.
func TestDoctorTakeover(t *testing.T) {
	e := newEnv(t)
	e.Make(strings.Replace(replicated("apps.kruise.io/v1alpha1", "CloneSet", "replicas: 0"), "{name: web}", "{name: web, labels: {policy.kruise.io/delete-protection: Cascading}}", 1))
	var plan doctor.Takeover
	e.encoded(&plan, "doctor", "--takeover")
	all := strings.Join(plan.Found, "\n")
	for _, a := range plan.Against {
		all += "\n" + a.What
	}
	if !strings.Contains(all, "of kind CloneSet.apps.kruise.io") || !strings.Contains(all, "have a label of deletion protection") || len(plan.Steps) < 5 {
		t.Errorf("it says %+v", plan)
	}
}
