package nodefit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestOfJob(t *testing.T) {
	small := node("n1", nil)
	small.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("10")}
	full := node("n1", nil)
	full.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("0")}
	cordoned := node("n1", nil)
	cordoned.Spec.Unschedulable = true
	requests := func(cpu string) string {
		return "{containers: [{name: a, resources: {requests: {cpu: " + cpu + "}}}], initContainers: [{name: i, resources: {requests: {cpu: 1}}}]}"
	}
	for name, tc := range map[string]struct {
		spec string
		node *corev1.Node
		want Verdict
	}{
		"any node":                    {"{}", node("n1", nil), Verdict{true, true}},
		"a node that is not ready":    {"{}", node("n1", nil, taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)), Verdict{}},
		"a node under pressure":       {"{}", node("n1", nil, taint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)), Verdict{Stay: true}},
		"a cordon before its taint":   {"{}", cordoned, Verdict{Stay: true}},
		"a cordon that is tolerated":  {"{tolerations: [{operator: Exists}]}", cordoned, Verdict{true, true}},
		"room enough":                 {requests("2"), small, Verdict{true, true}},
		"too large":                   {requests("2001m"), small, Verdict{Stay: true}},
		"a resource that is not here": {"{containers: [{name: a, resources: {requests: {example.com/gpu: 1}}}]}", small, Verdict{Stay: true}},
		"a node for no Pods":          {"{}", full, Verdict{Stay: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfJob(spec(t, tc.spec)).On(tc.node); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestEndures(t *testing.T) {
	away, full := taint("k", corev1.TaintEffectNoExecute), taint("k", corev1.TaintEffectNoSchedule)
	seconds := int64(5)
	for name, tc := range map[string]struct {
		tolerations []corev1.Toleration
		node        *corev1.Node
		want        bool
	}{
		"no taint":                  {nil, node("n1", nil), true},
		"a taint against new Pods":  {nil, node("n1", nil, full), true},
		"a taint against all":       {nil, node("n1", nil, away), false},
		"one that is borne a while": {[]corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}}, node("n1", nil, away), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Endures(tc.tolerations, tc.node); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCordonsAndSizesAreChanges(t *testing.T) {
	before := node("n1", nil)
	before.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2")}
	cordoned, larger, respelled := before.DeepCopy(), before.DeepCopy(), before.DeepCopy()
	cordoned.Spec.Unschedulable = true
	larger.Status.Allocatable["cpu"] = resource.MustParse("3")
	respelled.Status.Allocatable["cpu"] = resource.MustParse("2000m")
	if !Changed(before, cordoned) || !Changed(before, larger) || Changed(before, respelled) {
		t.Errorf("cordoned %v, larger %v, respelled %v, want true, true, false", Changed(before, cordoned), Changed(before, larger), Changed(before, respelled))
	}
}
