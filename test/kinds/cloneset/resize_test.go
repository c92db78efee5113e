package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// sized returns a CloneSet of burstable Pods.
func (e *env) sized(name string, replicas int32) *v1beta1.CloneSet {
	set := e.inPlace(name, replicas)
	set.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("100m"), corev1.ResourceMemory: quantity("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: quantity("500m"), corev1.ResourceMemory: quantity("128Mi")},
	}
	return set
}

func cpu(request string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = quantity(request)
	}
}

func TestResizeInPlaceRestartsNothing(t *testing.T) {
	e := newEnvAt(t, gated)
	e.Must(e.Client.Create(e.Ctx, e.sized("grown", 3)))
	e.settled("grown", 3, 3)
	before := e.pods("grown")
	h := e.record("grown")
	e.edit("grown", cpu("200m"))
	e.settled("grown", 3, 3)
	for i, p := range e.pods("grown") {
		status := p.Status.ContainerStatuses[0]
		if p.UID != before[i].UID || status.RestartCount != 0 || status.ContainerID != before[i].Status.ContainerStatuses[0].ContainerID {
			t.Errorf("Pod %s: UID %s, was %s; %d restarts", p.Name, p.UID, before[i].UID, status.RestartCount)
		}
		if got := status.Resources.Requests.Cpu().String(); got != "200m" {
			t.Errorf("Pod %s has %s of cpu, want 200m", p.Name, got)
		}
		if state := p.Annotations[keys.InPlaceUpdateState]; !strings.Contains(state, `"updateResources":true`) {
			t.Errorf("Pod %s has the in-place record %s", p.Name, state)
		}
	}
	h.read(func(h *history) {
		for name, versions := range h.versions {
			for _, p := range versions {
				if !scene.IsReady(p) {
					t.Fatalf("Pod %s was not ready while it was resized: %+v", name, p.Status.Conditions)
				}
			}
		}
	})

	t.Log("another quality of service class needs another Pod")
	e.edit("grown", func(set *v1beta1.CloneSet) {
		c := &set.Spec.Template.Spec.Containers[0]
		c.Resources.Requests = c.Resources.Limits.DeepCopy()
	})
	e.settled("grown", 3, 3)
	for _, p := range e.pods("grown") {
		if slices.Contains(uids(before), string(p.UID)) || p.Status.QOSClass != corev1.PodQOSGuaranteed {
			t.Errorf("Pod %s was not recreated; its class is %s", p.Name, p.Status.QOSClass)
		}
	}
}

func TestResizeThatRestartsTakesThePodOutOfServiceFirst(t *testing.T) {
	e := newEnvAt(t, gated)
	set := e.sized("restarted", 1)
	set.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("restarted", 1, 1)
	before := e.pods("restarted")[0]
	h := e.record("restarted")
	e.edit("restarted", func(set *v1beta1.CloneSet) {
		r := &set.Spec.Template.Spec.Containers[0].Resources
		r.Requests[corev1.ResourceMemory], r.Limits[corev1.ResourceMemory] = quantity("96Mi"), quantity("192Mi")
		image("nginx:mainline")(set)
	})
	e.settled("restarted", 1, 1)
	after := e.pods("restarted")[0]
	status := after.Status.ContainerStatuses[0]
	if after.UID != before.UID || status.RestartCount == 0 || status.Resources.Limits.Memory().String() != "192Mi" ||
		!strings.Contains(status.Image, "nginx:mainline") {
		t.Errorf("UID %s, was %s; %d restarts, memory %s, image %s", after.UID, before.UID, status.RestartCount,
			status.Resources.Limits.Memory(), status.Image)
	}
	h.read(func(h *history) {
		for _, p := range h.versions[after.Name] {
			changed := p.Spec.Containers[0].Resources.Limits.Memory().String() != "128Mi"
			if changed && p.Labels[keys.LifecycleState] == string(pub.LifecycleStateUpdating) && scene.IsReady(p) {
				t.Errorf("the Pod was in service while it was changed: %+v", p.Status.Conditions)
			}
		}
	})
}

func TestResizeThatANodeRefusesCanBeTakenBack(t *testing.T) {
	e := newEnvAt(t, gated)
	e.Must(e.Client.Create(e.Ctx, e.sized("greedy", 2)))
	e.settled("greedy", 2, 2)
	before := e.pods("greedy")
	for _, p := range before {
		e.patchPod(p.Name, func(p *corev1.Pod) { p.Annotations["sim.kruise.io/fail-resize"] = "Infeasible" })
	}
	e.edit("greedy", cpu("400m"))
	e.Eventually("a Pod waits for a resize that its node refuses", func() error {
		for _, p := range e.pods("greedy") {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible {
					return nil
				}
			}
		}
		return fmt.Errorf("none does")
	})
	e.edit("greedy", cpu("100m"))
	e.settled("greedy", 2, 2)
	for i, p := range e.pods("greedy") {
		if p.UID != before[i].UID || p.Status.ContainerStatuses[0].RestartCount != 0 || p.Labels[keys.LifecycleState] != "Normal" {
			t.Errorf("Pod %s: UID %s, was %s; %d restarts, state %s", p.Name, p.UID, before[i].UID,
				p.Status.ContainerStatuses[0].RestartCount, p.Labels[keys.LifecycleState])
		}
	}
}
