package simulate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestEqualIsSemantic compares each Pod with each other, by equal and by what it stands for.
func TestEqualIsSemantic(t *testing.T) {
	grace, none := int64(30), int64(0)
	variants := map[string]func(*corev1.Pod){
		"none":                  func(*corev1.Pod) {},
		"another label":         func(p *corev1.Pod) { p.Labels["app"] = "other" },
		"a label more":          func(p *corev1.Pod) { p.Labels["more"] = "" },
		"another label instead": func(p *corev1.Pod) { delete(p.Labels, "app"); p.Labels["more"] = "" },
		"no labels":             func(p *corev1.Pod) { p.Labels = nil },
		"empty labels":          func(p *corev1.Pod) { p.Labels = map[string]string{} },
		"empty finalizers":      func(p *corev1.Pod) { p.Finalizers = []string{} },
		"a finalizer":           func(p *corev1.Pod) { p.Finalizers = []string{"a"} },
		"another finalizer":     func(p *corev1.Pod) { p.Finalizers = []string{"b"} },
		"two finalizers":        func(p *corev1.Pod) { p.Finalizers = []string{"a", "b"} },
		"a grace period":        func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = &grace },
		"another grace period":  func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = &none },
		"an amount":             func(p *corev1.Pod) { setCPU(p, "1") },
		"the same amount":       func(p *corev1.Pod) { setCPU(p, "1000m") },
		"another amount":        func(p *corev1.Pod) { setCPU(p, "2") },
		"no amount":             func(p *corev1.Pod) { setCPU(p, "0") },
		"a time":                func(p *corev1.Pod) { setStart(p, time.Unix(7, 0)) },
		"the same time":         func(p *corev1.Pod) { setStart(p, time.Unix(7, 0).In(time.FixedZone("elsewhere", 3600))) },
		"another time":          func(p *corev1.Pod) { setStart(p, time.Unix(8, 0)) },
		"a port":                func(p *corev1.Pod) { setPort(p, intstr.FromInt32(1)) },
		"a named port":          func(p *corev1.Pod) { setPort(p, intstr.FromString("1")) },
	}
	pods := map[string]*corev1.Pod{}
	for name, change := range variants {
		p := podNamed("a")
		p.Labels = map[string]string{"app": "web"}
		change(p)
		pods[name] = p
	}
	for one, a := range pods {
		for other, b := range pods {
			if got, want := equal(a, b), equality.Semantic.DeepEqual(a, b); got != want {
				t.Errorf("%s and %s: equal is %t, want %t", one, other, got, want)
			}
		}
	}
	if equalObjects(podNamed("a"), &corev1.Node{}) {
		t.Error("a Pod equals a Node")
	}
}

func setCPU(p *corev1.Pod, amount string) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func setStart(p *corev1.Pod, at time.Time) { p.Status.StartTime = &metav1.Time{Time: at} }

func setPort(p *corev1.Pod, port intstr.IntOrString) {
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port}}}
}
