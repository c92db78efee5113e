package protection

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestRefusal(t *testing.T) {
	const refused = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection="
	for name, tc := range map[string]struct {
		resource, value, object, want string
	}{
		"no label":                              {resource: "deployments.apps", object: "spec: {replicas: 2}"},
		"another value":                         {resource: "deployments.apps", value: "always", object: "spec: {replicas: 2}"},
		"always, whatever it is":                {resource: "secrets", value: "Always", want: "Always"},
		"always, and empty":                     {resource: "deployments.apps", value: "Always", object: "spec: {replicas: 0}", want: "Always"},
		"replicas":                              {resource: "deployments.apps", value: "Cascading", object: "spec: {replicas: 2}", want: "Cascading and replicas 2>0"},
		"replicas that are not given are one":   {resource: "clonesets.apps.kruise.io", value: "Cascading", object: "spec: {}", want: "Cascading and replicas 1>0"},
		"no replicas":                           {resource: "statefulsets.apps.kruise.io", value: "Cascading", object: "spec: {replicas: 0}"},
		"replicas in several domains":           {resource: "uniteddeployments.apps.kruise.io", value: "Cascading", object: "spec: {replicas: 6}", want: "Cascading and replicas 6>0"},
		"nodes that want a Pod":                 {resource: "daemonsets.apps", value: "Cascading", object: "status: {desiredNumberScheduled: 3}", want: "Cascading and replicas 3>0"},
		"a DaemonSet that nobody has looked at": {resource: "daemonsets.apps.kruise.io", value: "Cascading"},
		"a job that runs":                       {resource: "jobs.batch", value: "Cascading", object: "status: {active: 1}", want: "Cascading and active pods 1>0"},
		"a job that is over":                    {resource: "broadcastjobs.apps.kruise.io", value: "Cascading", object: "status: {succeeded: 1}"},
		"jobs of a schedule that run":           {resource: "cronjobs.batch", value: "Cascading", object: "status: {active: [{name: a}, {name: b}]}", want: "Cascading and active jobs 2>0"},
		"a schedule at rest":                    {resource: "advancedcronjobs.apps.kruise.io", value: "Cascading", object: "status: {}"},
		"a bound claim":                         {resource: "persistentvolumeclaims", value: "Cascading", object: "status: {phase: Bound}", want: `Cascading and status "Bound"`},
		"a volume that is free":                 {resource: "persistentvolumes", value: "Cascading", object: "status: {phase: Available}"},
		"a kind that holds nothing":             {resource: "services", value: "Cascading", object: "spec: {replicas: 2}"},
		"a namesake in another group":           {resource: "deployments.example.com", value: "Cascading", object: "spec: {replicas: 2}"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{}}
			if err := yaml.Unmarshal([]byte(tc.object), &o.Object); err != nil {
				t.Fatal(err)
			}
			if o.Object == nil {
				o.Object = map[string]any{}
			}
			asJSON(o)
			if tc.value != "" {
				o.SetLabels(map[string]string{"policy.kruise.io/delete-protection": tc.value})
			}
			want := tc.want
			if want != "" {
				want = refused + want
			}
			if got := Refusal(schema.ParseGroupResource(tc.resource), o); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// asJSON has whole numbers as the API server's objects have them.
func asJSON(o *unstructured.Unstructured) {
	for _, part := range []string{"spec", "status"} {
		fields, _ := o.Object[part].(map[string]any)
		for name, value := range fields {
			if f, ok := value.(float64); ok {
				fields[name] = int64(f)
			}
		}
	}
}
