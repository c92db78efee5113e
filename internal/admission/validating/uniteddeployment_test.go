package validating

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const zones = `
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: zones, namespace: ns}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template: {deploymentTemplate: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "nginx:1"}]}}}}}
  topology: {subsets: [{name: a, replicas: 1}, {name: b, replicas: 50%}, {name: c}]}
`

// inKind is the template of zones for workloads of another kind, with more fields in its spec.
func inKind(field, more string) string {
	return "{" + field + `: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, ` + more +
		`template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "nginx:1"}]}}}}}`
}

func TestUnitedDeploymentRules(t *testing.T) {
	const subsets, selector = "spec.topology.subsets", `selector "app=web" does not match: add its labels`
	native, cloneSet, advanced := inKind("statefulSetTemplate", ""), inKind("cloneSetTemplate", ""), inKind("advancedStatefulSetTemplate", "")
	for name, tc := range map[string]struct {
		old, new edits
		want     string
	}{
		"a valid one":                      {want: "allowed"},
		"a valid one of StatefulSets":      {new: edits{"spec.template": native}, want: "allowed"},
		"a valid one of CloneSets":         {new: edits{"spec.template": cloneSet}, want: "allowed"},
		"a valid one of Advanced ones":     {new: edits{"spec.template": advanced}, want: "allowed"},
		"a selector that can't be read":    {new: edits{"spec.selector": "{matchLabels: {app: 'a b'}}"}, want: `spec.selector.matchLabels: Invalid value: "a b": a valid label must be an empty string`},
		"labels of the workload":           {new: edits{"spec.template.deploymentTemplate.metadata": "{labels: {app: api}}"}, want: `spec.template.deploymentTemplate.metadata.labels: Invalid value: {"app":"api"}: ` + selector},
		"labels of the Pods":               {new: edits{"spec.template.deploymentTemplate.spec.template.metadata": "{labels: {app: api}}"}, want: `spec.template.deploymentTemplate.spec.template.metadata.labels: Invalid value: {"app":"api"}: ` + selector},
		"labels by expressions":            {new: edits{"spec.selector": "{matchExpressions: [{key: app, operator: In, values: [web]}]}"}, want: "allowed"},
		"more specified than wanted":       {new: edits{subsets: "[{name: a, replicas: 4}, {name: b, replicas: 50%}, {name: c}]"}, want: "spec.topology.subsets: Invalid value: 7: the subsets specify 7 Pods, which is more than replicas 6"},
		"all specified, and too little":    {new: edits{subsets: "[{name: a, replicas: 2}, {name: b, replicas: 50%}]"}, want: "spec.topology.subsets: Invalid value: 5: all subsets specify their replicas, 5 together, but replicas is 6: leave it out in one of them"},
		"all specified":                    {new: edits{subsets: "[{name: a, replicas: 3}, {name: b, replicas: 50%}]"}, want: "allowed"},
		"a percentage of too many":         {new: edits{subsets: "[{name: a, replicas: 300%}, {name: b}]"}, want: `spec.topology.subsets[0].replicas: Invalid value: "300%"`},
		"a negative share":                 {new: edits{subsets: "[{name: a, replicas: -1}, {name: b}]"}, want: "spec.topology.subsets[0].replicas: Invalid value: \"-1\": -1 is negative"},
		"least above most":                 {new: edits{subsets: "[{name: a, minReplicas: 50%, maxReplicas: 2}, {name: b}]"}, want: `spec.topology.subsets[0].minReplicas: Invalid value: "50%": is more than maxReplicas 2`},
		"limits":                           {new: edits{subsets: "[{name: a, minReplicas: 2, maxReplicas: 50%}, {name: b}]"}, want: "allowed"},
		"too many Pods of old":             {old: edits{"spec.replicas": "3"}, new: edits{"spec.replicas": "3", "spec.revisionHistoryLimit": "3"}, want: "allowed"},
		"replicas in the template":         {new: edits{"spec.template": inKind("statefulSetTemplate", "replicas: 2, ")}, want: "spec.template.statefulSetTemplate.spec.replicas: Forbidden: may not be set"},
		"a partition in the template":      {new: edits{"spec.template": inKind("statefulSetTemplate", "updateStrategy: {rollingUpdate: {partition: 2}}, ")}, want: "spec.template.statefulSetTemplate.spec.updateStrategy.rollingUpdate.partition: Forbidden: may not be set"},
		"replicas that are not used":       {new: edits{"spec.template": inKind("deploymentTemplate", "replicas: 2, ")}, want: "allowed"},
		"a rule of CloneSets":              {new: edits{"spec.template": inKind("cloneSetTemplate", "scaleStrategy: {podsToDelete: [x, x]}, ")}, want: "spec.template.cloneSetTemplate.spec.scaleStrategy.podsToDelete"},
		"a rule of Advanced StatefulSets":  {new: edits{"spec.template": inKind("advancedStatefulSetTemplate", "reserveOrdinals: [x], ")}, want: "spec.template.advancedStatefulSetTemplate.spec.reserveOrdinals[0]"},
		"Pods that end":                    {new: edits{"spec.template.deploymentTemplate.spec.template.spec.restartPolicy": "Never"}, want: `spec.template.deploymentTemplate.spec.template.spec.restartPolicy: Unsupported value: "Never"`},
		"a patch that is no object":        {new: edits{subsets: "[{name: a, patch: [1]}]"}, want: "spec.topology.subsets[0].patch: Invalid value"},
		"a patch that fits no field":       {new: edits{subsets: "[{name: a, patch: {spec: {containers: 3}}}]"}, want: "spec.topology.subsets[0].patch: Invalid value"},
		"what the API server says":         {new: edits{subsets: "[{name: x}, {name: a, patch: {spec: {hostname: refused}}}]"}, want: "spec.topology.subsets[1].patch.spec.hostname: Invalid value: refused"},
		"a node selector term":             {new: edits{subsets: "[{name: x}, {name: a, nodeSelectorTerm: {matchExpressions: [{key: refused, operator: In, values: [z]}]}}]"}, want: "spec.topology.subsets[1].nodeSelectorTerm.matchExpressions: Invalid value: refused"},
		"a toleration":                     {new: edits{subsets: "[{name: x, tolerations: [{key: t}]}, {name: a, tolerations: [{key: refused}]}]"}, want: "spec.topology.subsets[1].tolerations.key: Invalid value: refused"},
		"those that are there stay":        {old: edits{subsets: "[{name: a, patch: {spec: {hostname: refused}}, tolerations: [{key: refused}]}]"}, new: edits{subsets: "[{name: a, patch: {spec: {hostname: refused}}, tolerations: [{key: refused}]}, {name: b}]"}, want: "allowed"},
		"Deployments, then CloneSets":      {old: edits{}, new: edits{"spec.template": cloneSet}, want: "allowed"},
		"another claim of a StatefulSet":   {old: edits{"spec.template": native}, new: edits{"spec.template": inKind("statefulSetTemplate", "serviceName: other, ")}, want: "spec.template.statefulSetTemplate.spec: Forbidden: updates are only allowed to template"},
		"another strategy of StatefulSets": {old: edits{"spec.template": native}, new: edits{"spec.template": inKind("statefulSetTemplate", "minReadySeconds: 3, updateStrategy: {type: OnDelete}, ")}, want: "allowed"},
		"a subset in another cluster":      {new: edits{subsets: "[{name: a}, {name: b, targetCluster: {name: m}}]"}, want: "spec.topology.subsets[1].targetCluster: Forbidden: can't be used: feature-gate UnitedDeploymentMultiCluster is not enabled"},
		"one that is there already":        {old: edits{subsets: "[{name: b, targetCluster: {name: m}}]"}, new: edits{subsets: "[{name: a}, {name: b, targetCluster: {name: m}}]"}, want: "allowed"},
		"a wave of no subset":              {new: edits{subsets: "[{name: a}]", "spec.updateStrategy": "{waves: [{name: canary, subsets: [z]}]}"}, want: `spec.updateStrategy.waves[0].subsets[0]: Invalid value: "z": there is no subset of this name`},
		"a subset in two waves":            {new: edits{subsets: "[{name: a}, {name: b}]", "spec.updateStrategy": "{waves: [{name: canary, subsets: [a]}, {name: more, subsets: [b, a]}]}"}, want: `spec.updateStrategy.waves[1].subsets[1]: Invalid value: "a": the subset is in wave canary, too`},
		"in place only": {
			old:  edits{"spec.template": inKind("cloneSetTemplate", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}, ")},
			new:  edits{"spec.template": strings.Replace(inKind("cloneSetTemplate", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}, "), "{containers:", "{hostNetwork: true, containers:", 1)},
			want: "spec.template.cloneSetTemplate.spec.template",
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := admissionv1.AdmissionRequest{
				UID: "1", Namespace: "ns", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1"},
				Object: runtime.RawExtension{Raw: edit(t, zones, tc.new)},
			}
			if tc.old != nil {
				request.Operation, request.OldObject.Raw = admissionv1.Update, edit(t, zones, tc.old)
			}
			handler := UnitedDeployment(Options{Templates: refusing{}, Live: options(t).Live})
			answer := handler.Handle(context.Background(), admission.Request{AdmissionRequest: request})
			if got := strings.Join(causes(answer), "\n"); !strings.HasPrefix(got, tc.want) || tc.want == "" {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}

// refusing refuses every hostname, key of a node selector and key of a toleration that is "refused".
type refusing struct{}

func (refusing) Check(_ context.Context, _ string, template map[string]any) (out Verdict) {
	refuse := func(path ...string) {
		at := field.NewPath("template", path...)
		out.Errors = append(out.Errors, field.Invalid(at, field.OmitValueType{}, "refused"))
	}
	spec, _ := template["spec"].(map[string]any)
	if spec["hostname"] == "refused" {
		refuse("spec", "hostname")
	}
	tolerations, _ := spec["tolerations"].([]any)
	for i, toleration := range tolerations {
		if toleration.(map[string]any)["key"] == "refused" {
			out.Errors = append(out.Errors, field.Invalid(field.NewPath("template", "spec", "tolerations").Index(i).Child("key"), field.OmitValueType{}, "refused"))
		}
	}
	affinity, _ := spec["affinity"].(map[string]any)
	node, _ := affinity["nodeAffinity"].(map[string]any)
	required, _ := node["requiredDuringSchedulingIgnoredDuringExecution"].(map[string]any)
	terms, _ := required["nodeSelectorTerms"].([]any)
	for i, term := range terms {
		expressions, _ := term.(map[string]any)["matchExpressions"].([]any)
		for _, e := range expressions {
			if e.(map[string]any)["key"] == "refused" {
				at := field.NewPath("template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
				out.Errors = append(out.Errors, field.Invalid(at.Index(i).Child("matchExpressions"), field.OmitValueType{}, "refused"))
			}
		}
	}
	return out
}

// TestSpreadWithinOneDomain: a subset that is in one zone can't be spread over three.
func TestSpreadWithinOneDomain(t *testing.T) {
	object := edit(t, zones, edits{
		"spec.template.deploymentTemplate.spec.template.spec.topologySpreadConstraints": "[{maxSkew: 1, minDomains: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]",
		"spec.topology.subsets": "[{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z]}]}}]",
	})
	answer := UnitedDeployment(Options{}).Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Namespace: "ns", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object},
	}})
	if len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], "subset a selects nodes by it") {
		t.Errorf("warnings: %q, answer %v", answer.Warnings, causes(answer))
	}
}
