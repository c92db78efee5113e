package validating

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

const spreadDeployment = `{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {name: w, namespace: ns}, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: [{name: a, maxReplicas: 1}, {name: b}]}}`

// patchedTemplates refuses Pods with the label bad, and notes how many it was asked about.
type patchedTemplates struct{ asked *atomic.Int32 }

func (p patchedTemplates) Check(_ context.Context, _ string, template map[string]any) Verdict {
	p.asked.Add(1)
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels["bad"] != nil {
		return Verdict{Errors: field.ErrorList{field.Invalid(field.NewPath("template", "metadata"), "bad", "is bad")}}
	}
	return Verdict{}
}

func TestWorkloadSpread(t *testing.T) {
	subsets := func(text string) edits { return edits{"spec.subsets": text} }
	adaptive := func(subsets, strategy string) edits {
		return edits{"spec.subsets": subsets, "spec.scheduleStrategy": strategy}
	}
	for name, tc := range map[string]struct {
		old, new edits // an update if there are old ones
		beside   string
		off      bool
		want     string
		warning  string
	}{
		"numbers":                          {},
		"percentages":                      {new: subsets("[{name: a, maxReplicas: 30%}, {name: b, maxReplicas: 70%}]")},
		"percentages and the rest":         {new: subsets("[{name: a, maxReplicas: 30%}, {name: b}]")},
		"percentages that are not all":     {new: subsets("[{name: a, maxReplicas: 30%}, {name: b, maxReplicas: 60%}]"), want: "must be 100% in all"},
		"percentages of more than all":     {new: subsets("[{name: a, maxReplicas: 60%}, {name: b, maxReplicas: 60%}, {name: c}]"), want: "must not be more than 100% in all"},
		"one percentage of more than all":  {new: subsets("[{name: a, maxReplicas: 101%}, {name: b}]"), want: "must not be more than 100%"},
		"both":                             {new: subsets("[{name: a, maxReplicas: 3}, {name: b, maxReplicas: 60%}, {name: c}]"), want: "must be of the same type"},
		"neither":                          {new: subsets("[{name: a, maxReplicas: many}, {name: b}]"), want: "must be a number of 0 or more, or a percentage"},
		"less than none":                   {new: subsets("[{name: a, maxReplicas: -1}, {name: b}]"), want: "must be a number of 0 or more, or a percentage"},
		"no limit in the middle":           {new: subsets("[{name: a}, {name: b, maxReplicas: 3}, {name: c}]")},
		"floors":                           {new: subsets("[{name: a, maxReplicas: 3, minReplicas: 1}, {name: b, minReplicas: 2}]")},
		"a floor as high as the limit":     {new: subsets("[{name: a, maxReplicas: 30%, minReplicas: 30%}, {name: b, minReplicas: 70%}]")},
		"a floor above the limit":          {new: subsets("[{name: a, maxReplicas: 3, minReplicas: 4}, {name: b}]"), want: "spec.subsets[0].minReplicas: Invalid value: \"4\": must not be more than maxReplicas 3"},
		"floors of more than all":          {new: subsets("[{name: a, minReplicas: 60%}, {name: b, minReplicas: 50%}]"), want: "the percentages of minReplicas must not be more than 100% in all"},
		"a floor of another type":          {new: subsets("[{name: a, maxReplicas: 3}, {name: b, minReplicas: 50%}]"), want: "spec.subsets[1].minReplicas: Invalid value: \"50%\": must be of the same type"},
		"a floor that can't be read":       {new: subsets("[{name: a, minReplicas: few}, {name: b}]"), want: "spec.subsets[0].minReplicas: Invalid value: \"few\": must be a number of 0 or more"},
		"percentages of a StatefulSet":     {new: edits{"spec.subsets": "[{name: a, maxReplicas: 30%}, {name: b}]", "spec.targetRef": "{apiVersion: apps.kruise.io/v1alpha1, kind: StatefulSet, name: web}"}, want: "must be a number"},
		"a kind that nobody lists":         {new: edits{"spec.targetRef": "{apiVersion: example.com/v1, kind: Other, name: web}"}, want: "TargetReference's GroupKind is not permitted."},
		"a kind that is listed":            {new: edits{"spec.targetRef": "{apiVersion: example.com/v2, kind: Game, name: web}"}},
		"a selector that can't be read":    {new: edits{"spec.targetFilter": "{selector: {matchExpressions: [{key: a, operator: Like}]}}"}, want: "spec.targetFilter.selector.matchExpressions[0].operator"},
		"another one of the workload":      {beside: "{apiVersion: apps/v1beta2, kind: Deployment, name: web}", want: "WorkloadSpread other spreads this workload already"},
		"one of another workload":          {beside: "{apiVersion: apps/v1, kind: Deployment, name: db}"},
		"adaptive without the type":        {new: adaptive("[{name: a, maxReplicas: 1}, {name: b}]", "{adaptive: {rescheduleCriticalSeconds: 30}}"), want: "spec.scheduleStrategy.type"},
		"adaptive with a last limit":       {new: adaptive("[{name: a, maxReplicas: 1}, {name: b, maxReplicas: 1}]", "{type: Adaptive, adaptive: {rescheduleCriticalSeconds: 30}}"), want: "spec.subsets[1].maxReplicas"},
		"adaptive, as late as may be":      {new: adaptive("[{name: a, maxReplicas: 1}, {name: b, maxReplicas: 1}, {name: c}]", "{type: Adaptive, adaptive: {rescheduleCriticalSeconds: 147}}")},
		"adaptive, later":                  {new: adaptive("[{name: a, maxReplicas: 1}, {name: b, maxReplicas: 1}, {name: c}]", "{type: Adaptive, adaptive: {rescheduleCriticalSeconds: 148}}"), want: "must be 147 at most with 3 subsets"},
		"adaptive, one subset":             {new: adaptive("[{name: a}]", "{type: Adaptive, adaptive: {rescheduleCriticalSeconds: 9999}}")},
		"simulation":                       {new: adaptive("[{name: a, maxReplicas: 1}, {name: b}]", "{type: Adaptive, adaptive: {disableSimulationSchedule: true}}"), warning: "disableSimulationSchedule has no effect"},
		"a patch that makes a wrong Pod":   {new: subsets("[{name: a, maxReplicas: 1}, {name: b, patch: {metadata: {labels: {bad: b}}}}]"), want: "spec.subsets[1]: Invalid value: its Pods would not be valid"},
		"a patch that does not fit":        {new: subsets("[{name: a, patch: {spec: {containers: x}}}]"), want: "spec.subsets[0].patch"},
		"minDomains within a subset":       {new: subsets("[{name: a, requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}]"), warning: "no more than maxSkew 1 Pods"},
		"an update":                        {old: edits{}, new: subsets("[{name: a, maxReplicas: 2}, {name: b}]"), beside: "{apiVersion: apps/v1, kind: Deployment, name: web}"},
		"a label on one that is wrong now": {old: subsets("[{name: a, maxReplicas: x}]"), new: edits{"spec.subsets": "[{name: a, maxReplicas: x}]", "metadata.labels": "{a: b}"}, off: true},
		"the gate is off":                  {off: true, want: "feature-gate WorkloadSpread is not enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, appsv1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			there := fake.NewClientBuilder().WithScheme(scheme)
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx"}}
			deployment.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone", MinDomains: new(int32(3)), MaxSkew: 1}}
			there.WithObjects(deployment)
			if tc.beside != "" {
				other := &v1beta1.WorkloadSpread{}
				if err := json.Unmarshal(edit(t, spreadDeployment, edits{"metadata.name": "other", "spec.targetRef": tc.beside}), other); err != nil {
					t.Fatal(err)
				}
				there.WithObjects(other)
			}
			asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "WorkloadSpread"},
				Name: "w", Namespace: "ns", Object: runtime.RawExtension{Raw: edit(t, spreadDeployment, tc.new)},
			}}
			if tc.old != nil {
				asked.Operation, asked.OldObject = admissionv1.Update, runtime.RawExtension{Raw: edit(t, spreadDeployment, tc.old)}
			}
			accepted, judged := 0, atomic.Int32{}
			o := Options{
				Live: there.Build(), Templates: patchedTemplates{&judged},
				SpreadKinds: func(context.Context) ([]schema.GroupKind, error) {
					return []schema.GroupKind{{Group: "example.com", Kind: "Game"}}, nil
				},
				AcceptedSpread: func(context.Context, *v1beta1.WorkloadSpread, *v1beta1.WorkloadSpread) error {
					accepted++
					return nil
				},
			}
			if tc.off {
				o.Disabled = map[string]string{"WorkloadSpread": "feature-gate WorkloadSpread is not enabled"}
			}
			got := WorkloadSpread(o).Handle(t.Context(), asked)
			if got.Allowed != (tc.want == "") {
				t.Fatalf("allowed is %t: %+v", got.Allowed, got.Result)
			}
			if tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("refused with %q, want %q", got.Result.Message, tc.want)
			}
			if tc.off && tc.want != "" && got.Result.Code != http.StatusForbidden {
				t.Errorf("refused with code %d", got.Result.Code)
			}
			if (accepted == 1) != (tc.want == "" && !tc.off) {
				t.Errorf("the webhooks for Pods were widened %d times", accepted)
			}
			if warned := strings.Join(got.Warnings, "\n"); (tc.warning == "") != (warned == "") || !strings.Contains(warned, tc.warning) {
				t.Errorf("the warnings are %q, want %q", warned, tc.warning)
			}
		})
	}
}
