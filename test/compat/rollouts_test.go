package compat

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// rolloutSchema judges Rollouts of a version as an API server does that has nothing but the CRD.
type rolloutSchema struct {
	t          *testing.T
	structural *structuralschema.Structural
	fields     schemavalidation.SchemaValidator
	rules      *cel.Validator
}

func newRolloutSchema(t *testing.T, version string) rolloutSchema {
	t.Helper()
	text, err := os.ReadFile("../../config/rollouts/crd/rollouts.kruise.io_rollouts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != version {
			continue
		}
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(&props)
		if err != nil {
			t.Fatal(err)
		}
		fields, _, err := schemavalidation.NewSchemaValidator(&props)
		if err != nil {
			t.Fatal(err)
		}
		return rolloutSchema{t, structural, fields, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	t.Fatalf("the CRD has no version %s", version)
	return rolloutSchema{}
}

// judge returns what is wrong with an object, which replaces old unless that is empty.
func (s rolloutSchema) judge(text, old string) string {
	s.t.Helper()
	read := func(text string) map[string]any {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			s.t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil { // as API servers read numbers
			s.t.Fatal(err)
		}
		defaulting.Default(object, s.structural)
		return object
	}
	now := read(text)
	errs := schemavalidation.ValidateCustomResource(field.NewPath(""), now, s.fields)
	var then map[string]any
	if old != "" {
		then = read(old)
	}
	if len(errs) == 0 {
		if then == nil {
			errs, _ = s.rules.Validate(context.Background(), nil, s.structural, now, nil, celconfig.RuntimeCELCostBudget)
		} else {
			errs, _ = s.rules.Validate(context.Background(), nil, s.structural, now, then, celconfig.RuntimeCELCostBudget)
		}
	}
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

func TestWhatSchemasSayOfRollouts(t *testing.T) {
	const deployment = "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, "
	const set = "workloadRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, "
	cases := map[string]struct{ spec, want string }{
		"steps by number and by percentage": {deployment + "strategy: {canary: {steps: [{replicas: 1}, {replicas: 50%, traffic: 20%}, {replicas: 100%}]}}", ""},
		"neither style":                     {deployment + "strategy: {}", "exactly one of canary and blueGreen is needed"},
		"both styles": {deployment + "strategy: {canary: {steps: [{replicas: 1}]}, blueGreen: {steps: [{replicas: 1}]}}",
			"exactly one of canary and blueGreen is needed"},
		"no steps":                      {deployment + "strategy: {canary: {steps: []}}", "should have at least 1 items"},
		"a step without replicas":       {deployment + "strategy: {canary: {steps: [{traffic: 5%}]}}", "replicas: Required value"},
		"a step of 0%":                  {deployment + "strategy: {canary: {steps: [{replicas: 0%}]}}", "in body should match"},
		"a step of more than 100%":      {deployment + "strategy: {canary: {steps: [{replicas: 101%}]}}", "in body should match"},
		"a step of text":                {deployment + "strategy: {canary: {steps: [{replicas: many}]}}", "in body should match"},
		"no traffic in a canary":        {deployment + "strategy: {canary: {steps: [{replicas: 1, traffic: 0%}]}}", "traffic must be at least 1%"},
		"no traffic in a blueGreen":     {deployment + "strategy: {blueGreen: {steps: [{replicas: 1, traffic: 0%}]}}", ""},
		"more traffic than all":         {deployment + "strategy: {canary: {steps: [{replicas: 1, traffic: 101%}]}}", "in body should match"},
		"blueGreen of a StatefulSet":    {set + "strategy: {blueGreen: {steps: [{replicas: 1}]}}", "can be used with a Deployment or a CloneSet only"},
		"a second StatefulSet":          {set + "strategy: {canary: {enableExtraWorkloadForCanary: true, steps: [{replicas: 1}]}}", "can be true with a Deployment only"},
		"a patch of no second workload": {set + "strategy: {canary: {patchPodTemplateMetadata: {labels: {a: b}}, steps: [{replicas: 1}]}}", "has an effect only on a second Deployment"},
		"a second Deployment with a patch": {
			deployment + "strategy: {canary: {enableExtraWorkloadForCanary: true, patchPodTemplateMetadata: {labels: {a: b}}, steps: [{replicas: 1}]}}", ""},
		"traffic without a provider": {deployment + "strategy: {canary: {trafficRoutings: [{service: web}], steps: [{replicas: 1}]}}", "needs ingress, gateway or customNetworkRefs"},
		"traffic without a Service":  {deployment + `strategy: {canary: {trafficRoutings: [{service: "", ingress: {name: web}}], steps: [{replicas: 1}]}}`, "service in body should be at least 1 chars"},
		"a negative grace period": {deployment + "strategy: {canary: {trafficRoutings: [{service: web, gracePeriodSeconds: -1, ingress: {name: web}}], steps: [{replicas: 1}]}}",
			"gracePeriodSeconds in body should be greater than or equal to 0"},
		"nine Services": {deployment + "strategy: {canary: {trafficRoutings: [" + strings.Repeat("{service: a, ingress: {name: a}}, ", 9) + "], steps: [{replicas: 1}]}}",
			"must have at most 8 items"},
		"a route without a name": {deployment + "strategy: {canary: {trafficRoutings: [{service: a, gateway: {}}], steps: [{replicas: 1}]}}", "httpRouteName: Required value"},
		"a match of everything":  {deployment + "strategy: {canary: {steps: [{replicas: 1, matches: [{}]}]}}", "an empty match is every request"},
		"traffic of its own and of a TrafficRouting": {
			deployment + "strategy: {canary: {trafficRoutingRef: a, trafficRoutings: [{service: a, ingress: {name: a}}], steps: [{replicas: 1}]}}", "can't be used beside trafficRoutings"},
		"a threshold of more than all": {deployment + "strategy: {canary: {failureThreshold: 101%, steps: [{replicas: 1}]}}", "in body should match"},
	}
	schema := newRolloutSchema(t, "v1beta1")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := schema.judge("{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: web}, spec: {"+tc.spec+"}}", "")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("answered %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatCannotChangeDuringARelease(t *testing.T) {
	const before = "spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {canary: {trafficRoutings: [{service: web, ingress: {name: web}}], " +
		"steps: [{replicas: 1}, {replicas: 100%}]}}}"
	cases := map[string]struct{ from, to, want string }{
		"the workload":         {"kind: Deployment", "kind: CloneSet", "can't be changed during a release"},
		"the number of steps":  {"{replicas: 1}, ", "", "the number of steps can't be changed"},
		"the style":            {"{canary: {", "{canary: {enableExtraWorkloadForCanary: true, ", "the style of the release can't be changed"},
		"to blueGreen":         {"canary:", "blueGreen:", "the style of the release can't be changed"},
		"the Service":          {"service: web", "service: other", "trafficRoutings can't be changed"},
		"no traffic any more":  {"trafficRoutings: [{service: web, ingress: {name: web}}], ", "", "trafficRoutings can't be changed"},
		"what a step says":     {"replicas: 1", "replicas: 2", ""},
		"pausing":              {"{canary: {", "{paused: true, canary: {", ""},
		"a threshold, midways": {"{canary: {", "{canary: {failureThreshold: 1, ", ""},
	}
	schema := newRolloutSchema(t, "v1beta1")
	in := func(phase, spec string) string {
		return "{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: web}, status: {phase: " + phase + "}, " + spec + "}"
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := strings.Replace(before, tc.from, tc.to, 1)
			if got := schema.judge(in("Healthy", after), in("Healthy", before)); got != "" {
				t.Errorf("without a release answered %q", got)
			}
			for _, phase := range []string{"Progressing", "Terminating"} {
				if got := schema.judge(in(phase, after), in(phase, before)); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
					t.Errorf("in phase %s answered %q, want %q", phase, got, tc.want)
				}
			}
		})
	}
}

func TestWhatSchemasSayOfOlderRollouts(t *testing.T) {
	const ref = "objectRef: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}, "
	schema := newRolloutSchema(t, "v1alpha1")
	for name, tc := range map[string]struct{ spec, want string }{
		"weights":                              {ref + "strategy: {canary: {steps: [{weight: 5}, {weight: 100, replicas: 100%}]}}", ""},
		"without a workload":                   {"objectRef: {}, strategy: {canary: {steps: [{weight: 5}]}}", "name the workload"},
		"without steps":                        {ref + "strategy: {}", "needs canary"},
		"a step that says neither":             {ref + "strategy: {canary: {steps: [{pause: {}}]}}", "needs replicas or weight"},
		"a weight over 100 besides replicas":   {ref + "strategy: {canary: {steps: [{weight: 101, replicas: 1}]}}", "should be less than or equal to 100"},
		"a negative weight":                    {ref + "strategy: {canary: {steps: [{weight: -1}]}}", "should be greater than or equal to"},
		"a step of text in the older version ": {ref + "strategy: {canary: {steps: [{replicas: many}]}}", "in body should match"},
	} {
		t.Run(name, func(t *testing.T) {
			got := schema.judge("{apiVersion: rollouts.kruise.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {"+tc.spec+"}}", "")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("answered %q, want %q", got, tc.want)
			}
		})
	}
}
