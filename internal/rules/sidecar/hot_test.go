package sidecar

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// hotTarget is a SidecarSet of one hot sidecar at a resource version.
func hotTarget(t *testing.T, image, version string) Target {
	t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", ResourceVersion: version}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{
		Container:       corev1.Container{Name: "envoy", Image: image},
		UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "idle"},
	}}
	target, err := NewTarget(set, "mesh-1")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// hotPod is a Pod as it is created: the first container works.
func hotPod(target Target) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1, Annotations: map[string]string{}}}
	p.Spec.Containers = []corev1.Container{{Name: "envoy-1", Image: "v1"}, {Name: "envoy-2", Image: "idle"}}
	for i, name := range []string{"envoy-1", "envoy-2"} {
		p.Annotations[keys.SidecarSetVersionPrefix+name] = fmt.Sprint(1 - i)
		p.Annotations[keys.SidecarSetVersionAltPrefix+name] = fmt.Sprint(i)
	}
	SetWorking(p, "envoy", "envoy-1")
	SetRecord(p, keys.SidecarSetHash, Record{SidecarSetName: "mesh", Hash: "older"})
	SetRecord(p, keys.SidecarSetHashWithoutImage, Record{SidecarSetName: "mesh", Hash: target.Hashes.WithoutImage})
	AddInjected(p, "mesh")
	run(p)
	return p
}

// run lets the kubelet follow, and all containers but the given ones get ready.
func run(p *corev1.Pod, notReady ...string) {
	p.Status.Phase, p.Status.ObservedGeneration = corev1.PodRunning, p.Generation
	p.Status.ContainerStatuses = nil
	ready := corev1.ConditionTrue
	for _, c := range p.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image, ContainerID: c.Name + c.Image, Ready: true}
		for _, name := range notReady {
			if name == c.Name {
				status.Ready, ready = false, corev1.ConditionFalse
			}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
}

// describe names images, the working container, and the versions of both with those that each knows of the other.
func describe(p *corev1.Pod) string {
	versions := ""
	for _, name := range []string{"envoy-1", "envoy-2"} {
		versions += " " + p.Annotations[keys.SidecarSetVersionPrefix+name] + "/" + p.Annotations[keys.SidecarSetVersionAltPrefix+name]
	}
	working, _ := WorkingIn(p)
	return p.Spec.Containers[0].Image + " " + p.Spec.Containers[1].Image + " " + working["envoy"] + versions
}

// TestHotUpgradeStepByStep goes through two upgrades, of which each gives the work to the other container.
func TestHotUpgradeStepByStep(t *testing.T) {
	target := hotTarget(t, "v2", "5000")
	p := hotPod(target)
	is := func(when, want string, serving bool, resets int) {
		t.Helper()
		s := target.Classify(p, now)
		if diff := cmp.Diff(want, describe(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		if s.IsServing() != serving || len(s.Resets) != resets {
			t.Errorf("%s: serving %t with %d resets due, want %t and %d (%s)", when, s.IsServing(), len(s.Resets), serving, resets, s.Unsettled)
		}
	}
	is("new", "v1 idle envoy-1 1/0 0/1", true, 0)
	target.Upgrade(p, now)
	p.Generation++
	is("written", "v1 v2 envoy-2 1/5000 5000/1", false, 0)
	run(p, "envoy-2")
	is("starting", "v1 v2 envoy-2 1/5000 5000/1", false, 0)
	run(p)
	is("taken over", "v1 v2 envoy-2 1/5000 5000/1", false, 1)
	target.Reset(p, []string{"envoy"}, now)
	p.Generation++
	is("going idle", "idle v2 envoy-2 0/5000 5000/0", false, 0)
	run(p)
	is("done", "idle v2 envoy-2 0/5000 5000/0", true, 0)

	target = hotTarget(t, "v3", "7000")
	target.Upgrade(p, now)
	is("the second time", "v3 v2 envoy-1 7000/5000 5000/7000", false, 0)
	if s := target.Classify(p, now); !s.Updated {
		t.Error("it is not updated")
	}
}

func TestHotUpgradesThatGoWrong(t *testing.T) {
	// broken is a Pod whose new container does not get ready.
	broken := func(t *testing.T) *corev1.Pod {
		target := hotTarget(t, "v2", "5000")
		p := hotPod(target)
		target.Upgrade(p, now)
		run(p, "envoy-2")
		return p
	}
	for name, tc := range map[string]struct {
		pod            func(*testing.T) *corev1.Pod
		image, version string
		want           string
	}{
		"the next image goes to the container that failed": {broken, "v3", "6000", "v1 v3 envoy-2 1/6000 6000/1"},
		"going back lets the container that failed rest":   {broken, "v1", "6000", "v1 idle envoy-1 1/0 0/1"},
		"versions grow though those of the cluster do not": {func(t *testing.T) *corev1.Pod { return hotPod(hotTarget(t, "v2", "")) }, "v2", "", "v1 v2 envoy-2 1/2 2/1"},
		"the image that works already changes nothing":     {func(t *testing.T) *corev1.Pod { return hotPod(hotTarget(t, "v2", "")) }, "v1", "9", "v1 idle envoy-1 1/0 0/1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.pod(t)
			target := hotTarget(t, tc.image, tc.version)
			if s := target.Classify(p, now); s.Waits != "" {
				t.Fatalf("it waits: %s", s.Waits)
			}
			target.Upgrade(p, now)
			if diff := cmp.Diff(tc.want, describe(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoUpgradeOverlaps: while the container that took over waits for the other one to go idle, the next image waits, too.
func TestNoUpgradeOverlaps(t *testing.T) {
	target := hotTarget(t, "v2", "5000")
	p := hotPod(target)
	target.Upgrade(p, now)
	run(p)
	if s := hotTarget(t, "v3", "6000").Classify(p, now); s.Waits == "" {
		t.Error("it does not wait")
	}
}
