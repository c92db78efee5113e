package disruption

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

func TestOperationOf(t *testing.T) {
	resources := func(requests, limits string) corev1.ResourceRequirements {
		out := corev1.ResourceRequirements{}
		if requests != "" {
			out.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(requests), corev1.ResourceMemory: resource.MustParse("1Gi")}
		}
		if limits != "" {
			out.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limits), corev1.ResourceMemory: resource.MustParse("1Gi")}
		}
		return out
	}
	const none, update, resize = v1beta1.PubOperation(""), v1beta1.PubUpdateOperation, v1beta1.PubResizeOperation
	for name, tc := range map[string]struct {
		before, after func(*corev1.Pod)
		want          v1beta1.PubOperation
	}{
		"nothing changes":             {want: none},
		"an annotation and a label":   {after: func(p *corev1.Pod) { p.Annotations["a"], p.Labels["l"] = "b", "c" }, want: none},
		"the status":                  {after: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, want: none},
		"another image":               {after: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }, want: update},
		"any other part of the spec":  {after: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }, want: update},
		"it is marked as unavailable": {after: func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"x"] = "" }, want: update},
		"it is marked no longer":      {before: func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"x"] = "" }, after: func(p *corev1.Pod) { delete(p.Labels, keys.UnavailablePrefix+"x") }, want: none},
		"the mark gets another value": {before: func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"x"] = "" }, after: func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"x"] = "y" }, want: none},
		"one mark more":               {before: func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"x"] = "" }, after: func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"y"] = "y" }, want: update},
		"more cpu":                    {after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("2", "4") }, want: resize},
		"the same in other words":     {after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("1000m", "4") }, want: none},
		"more cpu and another image": {after: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources, p.Spec.Containers[0].Image = resources("2", "4"), "b"
		}, want: update},
		"a resource that is neither":  {after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["gpu"] = resource.MustParse("1") }, want: update},
		"a limit goes":                {after: func(p *corev1.Pod) { delete(p.Spec.Containers[0].Resources.Limits, corev1.ResourceCPU) }, want: resize},
		"it becomes guaranteed":       {before: func(p *corev1.Pod) { p.Spec.InitContainers = nil }, after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("4", "4") }, want: update},
		"it becomes a best effort":    {before: func(p *corev1.Pod) { p.Spec.InitContainers = nil }, after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("", "") }, want: update},
		"a container that restarts":   {before: restartsForCPU("RestartContainer"), after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("2", "4") }, want: update},
		"one that says it need not":   {before: restartsForCPU("NotRequired"), after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("2", "4") }, want: resize},
		"one that says nothing of it": {before: restartsForCPU(""), after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("2", "4") }, want: resize},
		"a static Pod":                {before: func(p *corev1.Pod) { p.Annotations[configSource] = "file" }, after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("2", "4") }, want: update},
		"one from the API server":     {before: func(p *corev1.Pod) { p.Annotations[configSource] = "api" }, after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources("2", "4") }, want: resize},
		"an init container has more":  {after: func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources = resources("2", "4") }, want: update},
		"a claim of devices":          {after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "a"}} }, want: update},
		"one container more":          {after: func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"}) }, want: update},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Resources: resources("1", "4")}},
				Containers:     []corev1.Container{{Name: "main", Image: "nginx", Resources: resources("1", "4")}},
			}}
			before.Labels, before.Annotations = map[string]string{}, map[string]string{}
			if tc.before != nil {
				tc.before(before)
			}
			after := before.DeepCopy()
			if tc.after != nil {
				tc.after(after)
			}
			got, disruptive := OperationOf(before, after)
			if got != tc.want || disruptive != (tc.want != none) {
				t.Errorf("got %q (%t), want %q", got, disruptive, tc.want)
			}
		})
	}
}

func restartsForCPU(policy corev1.ResourceResizeRestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
	}
}
