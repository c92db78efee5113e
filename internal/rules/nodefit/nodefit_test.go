package nodefit

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func spec(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	var out corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func node(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
}

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: "v", Effect: effect}
}

func TestOn(t *testing.T) {
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	ssd := map[string]string{"disk": "ssd"}
	for name, tc := range map[string]struct {
		spec string
		node *corev1.Node
		want Verdict
	}{
		"any node":                              {"{}", node("n1", nil), Verdict{true, true}},
		"the node by name":                      {"{nodeName: n1}", node("n1", nil), Verdict{true, true}},
		"another node by name":                  {"{nodeName: n2}", node("n1", nil), Verdict{}},
		"a selector that matches":               {"{nodeSelector: {disk: ssd}}", node("n1", ssd), Verdict{true, true}},
		"a selector that does not":              {"{nodeSelector: {disk: ssd}}", node("n1", nil), Verdict{}},
		"a taint against new Pods":              {"{}", node("n1", nil, taint("k", noSchedule)), Verdict{Stay: true}},
		"a taint against all Pods":              {"{}", node("n1", nil, taint("k", noExecute)), Verdict{}},
		"a taint that only prefers":             {"{}", node("n1", nil, taint("k", corev1.TaintEffectPreferNoSchedule)), Verdict{true, true}},
		"a taint against all, but not for long": {"{tolerations: [{key: k, operator: Exists, tolerationSeconds: 5}]}", node("n1", nil, taint("k", noExecute)), Verdict{true, true}},
		"two taints, one tolerated":             {"{tolerations: [{key: k, operator: Exists}]}", node("n1", nil, taint("k", noExecute), taint("l", noSchedule)), Verdict{Stay: true}},
		"a taint of another value":              {"{tolerations: [{key: k, value: w}]}", node("n1", nil, taint("k", noSchedule)), Verdict{Stay: true}},
		"a cordoned node":                       {"{}", node("n1", nil, taint(corev1.TaintNodeUnschedulable, noSchedule)), Verdict{true, true}},
		"a node that is not ready":              {"{}", node("n1", nil, taint(corev1.TaintNodeNotReady, noExecute), taint(corev1.TaintNodeUnreachable, noExecute)), Verdict{true, true}},
		"a node that is new and not ready":      {"{}", node("n1", nil, taint(corev1.TaintNodeNotReady, noSchedule)), Verdict{Stay: true}},
		"a node under pressure":                 {"{}", node("n1", nil, taint(corev1.TaintNodeDiskPressure, noSchedule), taint(corev1.TaintNodeMemoryPressure, noSchedule), taint(corev1.TaintNodePIDPressure, noSchedule)), Verdict{true, true}},
		"no network":                            {"{}", node("n1", nil, taint(corev1.TaintNodeNetworkUnavailable, noSchedule)), Verdict{Stay: true}},
		"no network needed":                     {"{hostNetwork: true}", node("n1", nil, taint(corev1.TaintNodeNetworkUnavailable, noSchedule)), Verdict{true, true}},
		"out of service":                        {"{}", node("n1", nil, taint(corev1.TaintNodeOutOfService, noExecute)), Verdict{}},
		"affinity that matches": {
			"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}}",
			node("n1", ssd), Verdict{true, true},
		},
		"affinity by name": {
			"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}]}}}}",
			node("n1", ssd), Verdict{},
		},
		"affinity that can't be read": {
			"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Like, values: [ssd]}]}]}}}}",
			node("n1", ssd), Verdict{},
		},
		"affinity and selector": {
			"{nodeSelector: {zone: a}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}}",
			node("n1", ssd), Verdict{},
		},
		"a comparison, which is not switched on": {"{tolerations: [{key: k, operator: Gt, value: '1'}]}", node("n1", nil, corev1.Taint{Key: "k", Value: "2", Effect: noSchedule}), Verdict{Stay: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(spec(t, tc.spec)).On(tc.node); got != tc.want {
				t.Errorf("On() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTolerations(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"the six that all get": {"{}", []string{
			"node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/disk-pressure:NoSchedule",
			"node.kubernetes.io/memory-pressure:NoSchedule", "node.kubernetes.io/pid-pressure:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule",
		}},
		"its own first, one of them replaced": {"{hostNetwork: true, tolerations: [{operator: Exists}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 9}]}", []string{
			":", "node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/disk-pressure:NoSchedule",
			"node.kubernetes.io/memory-pressure:NoSchedule", "node.kubernetes.io/pid-pressure:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule",
			"node.kubernetes.io/network-unavailable:NoSchedule",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := spec(t, tc.spec)
			before := in.DeepCopy()
			var got []string
			for _, toleration := range Tolerations(in) {
				if toleration.Operator != corev1.TolerationOpExists || toleration.TolerationSeconds != nil {
					t.Errorf("toleration %+v is not for ever", toleration)
				}
				got = append(got, fmt.Sprintf("%s:%s", toleration.Key, toleration.Effect))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("the template was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestPin(t *testing.T) {
	for name, text := range map[string]string{
		"no affinity":          "{}",
		"affinity to Pods":     "{affinity: {podAntiAffinity: {}}}",
		"preferences of nodes": "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}}",
		"requirements that have been judged": "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
			"{nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: *spec(t, text)}
			if got := NodeOf(p); got != "" {
				t.Errorf("NodeOf() = %q before it was pinned", got)
			}
			Pin(&p.Spec, "n1")
			if got := NodeOf(p); got != "n1" {
				t.Errorf("NodeOf() = %q, want n1", got)
			}
			kept, want := p.Spec.Affinity.DeepCopy(), spec(t, text).Affinity
			kept.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			if want == nil {
				want = &corev1.Affinity{}
			}
			if want.NodeAffinity == nil {
				want.NodeAffinity = &corev1.NodeAffinity{}
			}
			want.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			if diff := cmp.Diff(want, kept); diff != "" {
				t.Errorf("what is not required of nodes changed (-want +got):\n%s", diff)
			}
			p.Spec.NodeName = "n2"
			if got := NodeOf(p); got != "n2" {
				t.Errorf("NodeOf() = %q of a bound Pod, want n2", got)
			}
		})
	}
}

// TestChangedMissesNothing: wherever a verdict differs, Changed says so, or a controller would not look.
func TestChangedMissesNothing(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	draw := func() *corev1.Node {
		n := node("n1", map[string]string{})
		for _, key := range []string{"a", "b"} {
			if r.Intn(2) == 0 {
				n.Labels[key] = fmt.Sprint(r.Intn(2))
			}
			if r.Intn(2) == 0 {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
					Key: key, Value: fmt.Sprint(r.Intn(2)),
					Effect: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}[r.Intn(3)],
				})
			}
		}
		return n
	}
	fits := []Fit{
		Of(spec(t, "{}")), Of(spec(t, "{nodeSelector: {a: '1'}}")),
		Of(spec(t, "{tolerations: [{key: a, value: '1'}]}")), Of(spec(t, "{tolerations: [{key: b, operator: Exists, effect: NoExecute}]}")),
	}
	for range 20000 {
		before, after := draw(), draw()
		for i, fit := range fits {
			was, is := fit.On(before), fit.On(after)
			if was != is && !Changed(before, after) {
				t.Fatalf("fit %d: %+v became %+v unnoticed: %+v, %+v", i, was, is, before, after)
			}
			if is.Run && !is.Stay {
				t.Fatalf("fit %d: a Pod should run and may not stay: %+v", i, after)
			}
		}
		if after.Status.Phase = corev1.NodeRunning; Changed(before, before.DeepCopy()) {
			t.Fatalf("nothing changed in %+v", before)
		}
	}
}
