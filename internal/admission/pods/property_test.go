package pods

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// TestProperties draws Pods and SidecarSets. Done again on its own result the chain changes nothing; the Pod's own containers stay, in their order and
// with all that they had; no name is there twice; all that is mounted exists; and containers stand on the side that they ask for.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.IntRange(1, 3).Draw(t, "containers")
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}}}
		for i := range own {
			c := corev1.Container{Name: fmt.Sprintf("app-%d", i), VolumeMounts: mounts(t, "app"), Env: variables(t)}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"v0", "v1", "v2"}), 0, 3, rapid.ID).Draw(t, "volumes") {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		}
		declareMounted(p)
		var candidates []*inject.Candidate
		for i := range rapid.IntRange(0, 3).Draw(t, "sets") {
			candidates = append(candidates, inject.NewCandidate(drawSet(t, i)))
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		chain := chainOf(known{candidates: candidates})
		response, out := create(t, chain, raw)
		if !response.Allowed {
			t.Fatalf("refused: %v", response.Result)
		}
		if again, _ := create(t, chain, out); len(again.Patches) > 0 {
			t.Fatalf("asked again, it changes %v of %s", again.Patches, out)
		}
		after := &corev1.Pod{}
		if err := json.Unmarshal(out, after); err != nil {
			t.Fatal(err)
		}
		check(t, p, after, candidates)
	})
}

func mounts(t *rapid.T, label string) []corev1.VolumeMount {
	var all []corev1.VolumeMount
	for _, at := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/a", "/b", "/c"}), 0, 3, rapid.ID).Draw(t, label+" mounts") {
		all = append(all, corev1.VolumeMount{Name: rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "volume"), MountPath: at})
	}
	return all
}

func variables(t *rapid.T) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "KRUISE_CONTAINER_PRIORITY"}), 0, 3, rapid.ID).Draw(t, "variables") {
		all = append(all, corev1.EnvVar{Name: name, Value: fmt.Sprint(rapid.IntRange(-1, 1).Draw(t, "value"))})
	}
	return all
}

// declareMounted gives the Pod the volumes that it mounts, as the API server would ask for.
func declareMounted(p *corev1.Pod) {
	for _, c := range p.Spec.Containers {
		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: mount.Name})
			}
		}
	}
}

func drawSet(t *rapid.T, number int) *v1beta1.SidecarSet {
	set := setOf(t, fmt.Sprintf("set-%d", number), `{volumes: [{name: v0}, {name: v1}, {name: v2}, {name: unused}]}`)
	for i := range rapid.IntRange(1, 2).Draw(t, "sidecars") {
		c := v1beta1.SidecarContainer{Container: corev1.Container{Name: fmt.Sprintf("set-%d-%d", number, i), VolumeMounts: mounts(t, "sidecar"), Env: variables(t)}}
		c.PodInjectPolicy = rapid.SampledFrom([]v1beta1.PodInjectPolicyType{v1beta1.BeforeAppContainerType, v1beta1.AfterAppContainerType}).Draw(t, "place")
		c.ShareVolumePolicy.Type = rapid.SampledFrom([]v1beta1.ShareVolumePolicyType{v1beta1.ShareVolumePolicyEnabled, v1beta1.ShareVolumePolicyDisabled}).Draw(t, "share")
		if rapid.Bool().Draw(t, "transfer") {
			c.TransferEnv = []v1beta1.TransferEnvVar{{SourceContainerName: "app-0", EnvNames: []string{"B", "A"}}}
		}
		if rapid.Bool().Draw(t, "hot") {
			c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "e"}
		}
		if rapid.Bool().Draw(t, "init") {
			c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{}
			set.Spec.InitContainers = append(set.Spec.InitContainers, c)
		} else {
			set.Spec.Containers = append(set.Spec.Containers, c)
		}
	}
	return set
}

func check(t *rapid.T, before, after *corev1.Pod, candidates []*inject.Candidate) {
	var kept []corev1.Container
	seen := map[string]bool{}
	for _, c := range slices.Concat(after.Spec.InitContainers, after.Spec.Containers) {
		if seen[c.Name] {
			t.Errorf("there are two containers %s", c.Name)
		}
		seen[c.Name] = true
		paths := map[string]bool{}
		for _, mount := range c.VolumeMounts {
			if paths[mount.MountPath] {
				t.Errorf("container %s mounts two volumes at %s", c.Name, mount.MountPath)
			}
			paths[mount.MountPath] = true
			if !slices.ContainsFunc(after.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
				t.Errorf("container %s mounts volume %s, which does not exist", c.Name, mount.Name)
			}
		}
	}
	for _, c := range after.Spec.Containers {
		if strings.HasPrefix(c.Name, "app-") {
			c.Env = slices.DeleteFunc(c.Env, func(env corev1.EnvVar) bool { return env.Name == keys.ContainerBarrierEnv })
			kept = append(kept, c)
		}
	}
	if diff := cmp.Diff(before.Spec.Containers, kept, cmp.Comparer(func(a, b []corev1.EnvVar) bool {
		return slices.EqualFunc(a, b, func(a, b corev1.EnvVar) bool { return a.Name == b.Name && a.Value == b.Value })
	})); diff != "" {
		t.Errorf("the Pod's own containers have changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Spec.Volumes, after.Spec.Volumes[:len(before.Spec.Volumes)], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the Pod's own volumes have changed (-before +after):\n%s", diff)
	}
	first := slices.IndexFunc(after.Spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "app-") })
	for _, candidate := range candidates {
		for _, c := range candidate.Set.Spec.Containers {
			at := slices.IndexFunc(after.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.Name || o.Name == c.Name+"-1" })
			if at < 0 || (at < first) != (c.PodInjectPolicy == v1beta1.BeforeAppContainerType) {
				t.Errorf("sidecar %s, which is to be %s, is at %d, the app at %d", c.Name, c.PodInjectPolicy, at, first)
			}
		}
	}
}
