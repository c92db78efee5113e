package defaults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

func unitedDeployment(t *testing.T, spec string) *v1beta1.UnitedDeployment {
	t.Helper()
	out := &v1beta1.UnitedDeployment{}
	if err := yaml.UnmarshalStrict([]byte(spec), &out.Spec); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return out
}

func TestUnitedDeployment(t *testing.T) {
	const base = `
replicas: 1
revisionHistoryLimit: 10
updateStrategy: {type: Manual, manualUpdate: {}}
`
	const inPlace = "podUpdatePolicy: InPlaceIfPossible"
	for name, tc := range map[string]struct{ spec, old, want string }{
		"nothing given":         {spec: "{}", want: base + "topology: {scheduleStrategy: {type: Fixed}}"},
		"Adaptive stays":        {spec: "topology: {scheduleStrategy: {type: Adaptive}}", want: base + "topology: {scheduleStrategy: {type: Adaptive}}"},
		"no limits":             {spec: "topology: {subsets: [{name: a}]}", want: base + "topology: {scheduleStrategy: {type: Fixed}, subsets: [{name: a}]}"},
		"a limit":               {spec: "topology: {subsets: [{name: a, maxReplicas: 3}, {name: b}]}", want: base + "topology: {scheduleStrategy: {type: Fixed}, subsets: [{name: a, minReplicas: 0, maxReplicas: 3}, {name: b, minReplicas: 0}]}"},
		"a limit beside shares": {spec: "topology: {subsets: [{name: a, maxReplicas: 3}, {name: b, replicas: 1}]}", want: base + "topology: {scheduleStrategy: {type: Fixed}, subsets: [{name: a, maxReplicas: 3}, {name: b, replicas: 1}]}"},
		"Pods that are updated in place get their gate": {
			spec: "template: {advancedStatefulSetTemplate: {spec: {updateStrategy: {rollingUpdate: {" + inPlace + "}}}}}",
			want: base + "topology: {scheduleStrategy: {type: Fixed}}\ntemplate: {advancedStatefulSetTemplate: {spec: {updateStrategy: {rollingUpdate: {" + inPlace + "}}, template: {spec: {readinessGates: [{conditionType: InPlaceUpdateReady}]}}}}}",
		},
		"but not later": {
			spec: "template: {advancedStatefulSetTemplate: {spec: {updateStrategy: {rollingUpdate: {" + inPlace + "}}}}}", old: "template: {advancedStatefulSetTemplate: {spec: {}}}",
			want: base + "topology: {scheduleStrategy: {type: Fixed}}\ntemplate: {advancedStatefulSetTemplate: {spec: {updateStrategy: {rollingUpdate: {" + inPlace + "}}}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, want := unitedDeployment(t, tc.spec), unitedDeployment(t, tc.want)
			var old *v1beta1.UnitedDeployment
			if tc.old != "" {
				old = unitedDeployment(t, tc.old)
			}
			defaults.UnitedDeployment(set, old, defaults.Options{})
			if diff := cmp.Diff(want, set); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again := set.DeepCopy()
			defaults.UnitedDeployment(again, set, defaults.Options{})
			if diff := cmp.Diff(set, again); diff != "" {
				t.Errorf("filled in again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTemplatesOfUnitedDeployments: only that of a StatefulSet of Kubernetes is filled in, and only where it is new.
func TestTemplatesOfUnitedDeployments(t *testing.T) {
	const containers = "{spec: {template: {spec: {containers: [{name: app, image: 'nginx:1'}]}}}}"
	policy := func(set, old *v1beta1.UnitedDeployment, o defaults.Options) string {
		defaults.UnitedDeployment(set, old, o)
		if native := set.Spec.Template.StatefulSetTemplate; native != nil {
			return string(native.Spec.Template.Spec.RestartPolicy)
		}
		return string(set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.RestartPolicy)
	}
	native, deployment := "template: {statefulSetTemplate: "+containers+"}", "template: {deploymentTemplate: "+containers+"}"
	for name, tc := range map[string]struct {
		spec, old string
		o         defaults.Options
		want      string
	}{
		"a new StatefulSet":             {spec: native, want: "Always"},
		"one that has not changed":      {spec: native, old: native},
		"one in place of Deployments":   {spec: native, old: deployment, want: "Always"},
		"a Deployment":                  {spec: deployment},
		"templates are left as written": {spec: native, o: defaults.Options{TemplateNoDefaults: true}},
	} {
		var old *v1beta1.UnitedDeployment
		if tc.old != "" {
			old = unitedDeployment(t, tc.old)
		}
		if got := policy(unitedDeployment(t, tc.spec), old, tc.o); got != tc.want {
			t.Errorf("%s: restartPolicy %q, want %q", name, got, tc.want)
		}
	}
}
