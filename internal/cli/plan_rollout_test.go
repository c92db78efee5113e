package cli

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestPlanOfARollout: what each step comes to, and what of it may not be meant.
func TestPlanOfARollout(t *testing.T) {
	step := func(replicas, traffic string, seconds ...int32) v1beta1.Step {
		s := v1beta1.Step{Replicas: ptr.To(intstr.Parse(replicas))}
		if traffic != "" {
			s.Traffic = &traffic
		}
		if len(seconds) > 0 {
			s.Pause.Duration = &seconds[0]
		}
		return s
	}
	r := &v1beta1.Rollout{}
	r.Name = "web"
	r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{
		Steps:           []v1beta1.Step{step("1", "5%"), step("20%", "20%", 600), step("15%", "20%"), step("95%", ""), step("100%", "")},
		TrafficRoutings: []v1beta1.TrafficRoutingRef{{Service: "web"}},
	}}
	found, err := previewOf(r, cloneSet(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	p, out := shown()
	p.previewText(found)
	golden(t, "plan-rollout", out.String())
	encoded, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-rollout-json", string(encoded)+"\n")

	p, out = shown()
	forecast := foreseen(t, 0, func(*appsv1beta1.CloneSet) {})
	forecast.Release = found
	p.planText(forecast)
	golden(t, "plan-released", out.String())

	r.Spec.WorkloadRef.Kind = "SidecarSet"
	if _, err := previewOf(r, cloneSet(t, "", "")); err == nil {
		t.Error("there is a forecast of what no Rollout releases")
	}
}
