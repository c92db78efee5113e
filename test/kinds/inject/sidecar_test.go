package inject

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// selected are the labels of Pods that this test's SidecarSets select, in a manifest.
func (e *env) selected() string { return "{test: " + e.Namespace + "}" }

// sidecarSet creates a SidecarSet of this test, which selects this test's Pods unless its spec says otherwise.
func (e *env) sidecarSet(name, spec string, change ...func(*v1beta1.SidecarSet)) *v1beta1.SidecarSet {
	e.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-" + name}}
	e.Must(yaml.UnmarshalStrict([]byte(spec), &set.Spec))
	if set.Spec.Selector == nil {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": e.Namespace}}
	}
	for _, f := range change {
		f(set)
	}
	e.Must(e.Create(e.Ctx, set))
	e.Cleanup(func() { e.forget(set) })
	return set
}

// becomes tries what would become of a Pod, without creating it, until it is what the test expects: a SidecarSet takes a moment to be known.
func (e *env) becomes(pod string, check func(*corev1.Pod) error) {
	e.Helper()
	e.Eventually("a Pod becomes what is wanted", func() error {
		p, err := e.tryPod(pod, client.DryRunAll)
		if err != nil {
			return err
		}
		return check(p)
	})
}

func containers(want string) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		var all []string
		for _, c := range p.Spec.InitContainers {
			all = append(all, c.Name)
		}
		all = append(all, "|")
		for _, c := range p.Spec.Containers {
			all = append(all, c.Name)
		}
		if got := strings.TrimPrefix(strings.Join(all, " "), "| "); got != want {
			return fmt.Errorf("it has the containers %s, want %s", got, want)
		}
		return nil
	}
}

// example applies an example of the project in the test's namespace. Pods of it that get sidecars are created once these are known: a SidecarSet
// takes a moment, and the example has it right before the Pod.
func (e *env) example(name string, injected ...string) {
	e.Helper()
	root, err := cluster.Root()
	e.Must(err)
	apply := func() { e.Must(shared.ApplyFileIn(e.Ctx, filepath.Join(root, "examples", name), e.Namespace)) }
	apply()
	for _, pod := range injected {
		p := e.pod(pod)
		if p.Annotations[keys.SidecarSetInjectedList] != "" {
			continue
		}
		e.Eventually("the SidecarSet is known", func() error {
			trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "trial-", Namespace: e.Namespace, Labels: p.Labels}}
			trial.Spec.Containers = []corev1.Container{{Name: "trial", Image: "i"}}
			e.Must(e.Create(e.Ctx, trial, client.DryRunAll))
			if len(trial.Spec.Containers) == 1 {
				return errors.New("it is not")
			}
			return nil
		})
		e.Must(e.Delete(e.Ctx, p, client.GracePeriodSeconds(0)))
		apply()
	}
}

func TestTheBasicExample(t *testing.T) {
	e := newEnv(t)
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "test-sidecarset"}}
	t.Cleanup(func() { e.forget(set) })
	e.example("sidecarset-basic.yaml", "test-pod")
	p := e.pod("test-pod")
	e.Must(containers("sidecar1 app")(p))
	if got := env1(p, "sidecar1", keys.SidecarInjectedEnv); got != "true" {
		t.Errorf("sidecar1 has %s=%q", keys.SidecarInjectedEnv, got)
	}
	if got := env1(p, "app", keys.SidecarInjectedEnv); got != "" {
		t.Errorf("app has %s=%q", keys.SidecarInjectedEnv, got)
	}
	if v := volume(p, "log-volume"); v == nil || v.EmptyDir == nil {
		t.Errorf("the volume is %+v", v)
	}
	e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(set), set))
	if got := set.Spec.UpdateStrategy.MaxUnavailable; got == nil || got.IntValue() != 2 {
		t.Errorf("maxUnavailable is %v, want 2", got)
	}
	const full, withoutImage = "4zbdc2xzc8w7c4x2c6984266bc9d7zf87x946v7xdfv988f6c6fc9b7dz47w8zd5", "wcv47954b7xv5w4fbw682bbf78cw2449448vbf4fvvwv77947bc7fcv7fw89f98x"
	for key, want := range map[string]sidecar.Record{
		keys.SidecarSetHash:             {Hash: full, ControllerRevision: "test-sidecarset-cf4bf7796"},
		keys.SidecarSetHashWithoutImage: {Hash: withoutImage},
	} {
		records, err := sidecar.RecordsIn(p, key)
		e.Must(err)
		got := records["test-sidecarset"]
		want.SidecarSetName, want.SidecarList, want.UpdateTimestamp = "test-sidecarset", []string{"sidecar1"}, got.UpdateTimestamp
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if got := p.Annotations[keys.SidecarSetInjectedList]; got != "test-sidecarset" {
		t.Errorf("injected by %s", got)
	}
}

// forget deletes an object of the whole cluster when a test has ended.
func (e *env) forget(object client.Object) {
	if err := client.IgnoreNotFound(shared.Client.Delete(e.Afterwards(), object)); err != nil {
		e.Error(err)
	}
}

func env1(p *corev1.Pod, container, name string) string {
	for _, c := range p.Spec.Containers {
		for _, env := range c.Env {
			if c.Name == container && env.Name == name {
				return env.Value
			}
		}
	}
	return ""
}

func volume(p *corev1.Pod, name string) *corev1.Volume {
	var found *corev1.Volume
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Name == name {
			if found != nil {
				return nil // there are two
			}
			found = &p.Spec.Volumes[i]
		}
	}
	return found
}

func TestTheVolumesExample(t *testing.T) {
	e := newEnv(t)
	t.Cleanup(func() { e.forget(&v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log-sidecar"}}) })
	e.example("sidecarset-volume-merge.yaml", "app-a")
	p := e.pod("app-a")
	e.Must(containers("log-collector app")(p))
	if v := volume(p, "log-volume"); v == nil || v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "pvc-xxx" {
		t.Errorf("the volume is %+v", v)
	}
	for i, want := range []string{"/var/log", "/app/logs"} {
		mounts := p.Spec.Containers[i].VolumeMounts
		if at := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == "log-volume" }); at < 0 || mounts[at].MountPath != want {
			t.Errorf("container %s mounts %+v", p.Spec.Containers[i].Name, mounts)
		}
	}
}

func TestOrderIsAlwaysTheSame(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("a", `{containers: [{name: z, image: i, podInjectPolicy: BeforeAppContainer}, {name: m, image: i, podInjectPolicy: AfterAppContainer}]}`)
	e.sidecarSet("b", `{containers: [{name: c, image: i}], initContainers: [{name: x, image: i}, {name: "y", image: i, podInjectPolicy: BeforeAppContainer}]}`)
	e.sidecarSet("c", `{updateStrategy: {type: NotUpdate}, initContainers: [{name: native, image: i, restartPolicy: Always}]}`)
	pod := `{metadata: {generateName: web-, labels: ` + e.selected() + `}, spec: {initContainers: [{name: i, image: i}], containers: [{name: app, image: i}]}}`
	want := containers("y i native x | z c app m")
	e.becomes(pod, want)
	for range 50 {
		e.Must(want(e.newPod(pod, client.DryRunAll)))
	}
	p := e.newPod(pod)
	if policy := p.Spec.InitContainers[2].RestartPolicy; policy == nil || *policy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("the native sidecar has the restart policy %v", policy)
	}
}

func TestSidecarsTakeFromThePod(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("a", `
containers:
- name: side
  image: i
  shareVolumePolicy: {type: enabled}
  volumeMounts: [{name: own, mountPath: /var/log}]
  transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['main']"}}, envName: A, envNames: [C, B]}]
  resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: "max(cpu*50%, 50m)", memory: 200Mi}, requests: {cpu: "cpu/2"}}}
volumes: [{name: own, emptyDir: {}}]
imagePullSecrets: [{name: pull}]
`)
	pod := `
metadata: {name: web, labels: {main: app, test: ` + e.Namespace + `}}
spec:
  automountServiceAccountToken: false
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: app
    image: i
    env: [{name: POD_NAME, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}, {name: C, value: c}, {name: B, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}, {name: A, value: a}]
    resources: {limits: {cpu: 200m}}
    volumeMounts: [{name: data, mountPath: /data, subPathExpr: $(POD_NAME)}, {name: data, mountPath: /var/log}]
  - {name: two, image: i, resources: {limits: {cpu: 400m}}}
`
	e.becomes(pod, containers("side app two"))
	p := e.newPod(pod)
	side := p.Spec.Containers[0]
	var variables, mounts []string
	for _, env := range side.Env {
		variables = append(variables, env.Name)
	}
	for _, mount := range side.VolumeMounts {
		mounts = append(mounts, mount.Name+" "+mount.MountPath+" "+mount.SubPathExpr)
	}
	if diff := cmp.Diff([]string{"IS_INJECTED", "A", "B", "C", "POD_NAME"}, variables); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"own /var/log ", "data /data $(POD_NAME)"}, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	got := fmt.Sprint(side.Resources.Limits.Cpu(), " ", side.Resources.Limits.Memory(), " ", side.Resources.Requests.Cpu())
	if want := "300m 200Mi 300m"; got != want {
		t.Errorf("resources are %s, want %s", got, want)
	}
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "pull"}}, p.Spec.ImagePullSecrets); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
}

func TestPodsThatDoNotGoWithASidecarSetAreRefused(t *testing.T) {
	e := newEnv(t)
	set := e.sidecarSet("a", `{containers: [{name: side, image: i, resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: ^main$, resourcesExpr: {limits: {cpu: cpu}}}}]}`)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	e.Eventually("it is refused", func() error {
		_, err := e.tryPod(pod, client.DryRunAll)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "SidecarSet "+set.Name+`: container side: no containers match the regex pattern "^main$"`) {
			return fmt.Errorf("it is answered with %v", err) //nolint:errorlint // there may be none
		}
		return nil
	})
	wrong := set.DeepCopy()
	wrong.ObjectMeta = metav1.ObjectMeta{Name: set.Name + "-wrong"}
	wrong.Spec.Containers[0].ResourcesPolicy.ResourcesExpr.Limits.CPU = "cpu*cpu"
	if err := e.Create(e.Ctx, wrong, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "two quantities can't be multiplied") {
		t.Errorf("cpu*cpu was answered with %v", err)
	}
}

func TestPausedSetsAreNotInjected(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("on", `{containers: [{name: "on", image: i}]}`)
	e.sidecarSet("off", `{containers: [{name: "off", image: i}], injectionStrategy: {paused: true}}`)
	still := e.sidecarSet("still", `{containers: [{name: still, image: i}], updateStrategy: {paused: true}}`)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(pod, containers("on still app"))
	e.Must(e.Delete(e.Ctx, still))
	e.becomes(pod, containers("on app"))
}

func TestNamespacesAreSelected(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("labels", `{containers: [{name: labels, image: i}], namespaceSelector: {matchLabels: {team: `+e.Namespace+`}}}`)
	e.sidecarSet("name", `{containers: [{name: name, image: i}], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+e.Namespace+`}}}`)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(pod, containers("name app"))
	// Not known to any cache: a Pod may be the first thing that is in a namespace.
	other := e.in(e.NewNamespace(map[string]string{"team": e.Namespace}))
	e.Must(containers("labels app")(other.newPod(pod)))
	for _, excluded := range []string{"kube-system", e.NewNamespace(map[string]string{"control-plane": "openkruise", "team": e.Namespace})} {
		e.Must(containers("app")(e.in(excluded).newPod(pod, client.DryRunAll)))
	}
}

func TestACanaryTakesThePlaceOfItsBase(t *testing.T) {
	e := newEnv(t)
	base := e.sidecarSet("base", `{containers: [{name: side, image: "side:1"}]}`)
	e.sidecarSet("canary", `{selector: {matchLabels: {test: `+e.Namespace+`, canary: "yes"}}, updateStrategy: {type: NotUpdate}, containers: [{name: side, image: "side:2"}]}`, func(set *v1beta1.SidecarSet) {
		set.Annotations = map[string]string{keys.SidecarSetCanary: "true", keys.SidecarSetBase: base.Name}
	})
	runs := func(image string) func(*corev1.Pod) error {
		return func(p *corev1.Pod) error {
			if len(p.Spec.Containers) != 2 || p.Spec.Containers[0].Image != image {
				return fmt.Errorf("it has %+v", p.Spec.Containers)
			}
			return nil
		}
	}
	spec := `, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(`{metadata: {name: web, labels: {test: `+e.Namespace+`}}`+spec, runs("side:1"))
	e.becomes(`{metadata: {name: web, labels: {test: `+e.Namespace+`, canary: "yes"}}`+spec, runs("side:2"))
}

func TestARevisionIsInjected(t *testing.T) {
	e := newEnv(t)
	set := e.sidecarSet("a", `{customVersion: v1, containers: [{name: side, image: "side:1"}]}`)
	// Recorded by the controller of SidecarSets, or here.
	revision, err := sidecar.NewRevision(set, "kruise-system", 0)
	e.Must(err)
	revision.Revision = 1
	if err := e.Create(e.Ctx, revision); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	e.edit(set, `{customVersion: v2, containers: [{name: side, image: "side:2"}], injectionStrategy: {revision: {customVersion: v1, policy: Partial}}, updateStrategy: {partition: 70%}}`)
	pod := `{metadata: {generateName: web-, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(pod, func(p *corev1.Pod) error {
		if p.Spec.Containers[0].Image != "side:1" {
			return errors.New("it has the present image")
		}
		return nil
	})
	images := map[string]int{}
	for range 20 {
		images[e.newPod(pod).Spec.Containers[0].Image]++
	}
	if diff := cmp.Diff(map[string]int{"side:1": 14, "side:2": 6}, images); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e.edit(set, `{customVersion: v2, containers: [{name: side, image: "side:2"}], injectionStrategy: {revision: {customVersion: v1}}}`)
	e.becomes(pod, func(p *corev1.Pod) error {
		records, err := sidecar.RecordsIn(p, keys.SidecarSetHash)
		if got := records[set.Name].ControllerRevision; err != nil || got != revision.Name {
			return fmt.Errorf("it is noted that it has revision %s", got)
		}
		return nil
	})
}

// edit replaces the spec of a SidecarSet but for its selector.
func (e *env) edit(set *v1beta1.SidecarSet, spec string) {
	e.Helper()
	scene.Edit(e.Env, set.Name, set, func(set *v1beta1.SidecarSet) {
		selector := set.Spec.Selector
		set.Spec = v1beta1.SidecarSetSpec{}
		e.Must(yaml.UnmarshalStrict([]byte(spec), &set.Spec))
		set.Spec.Selector = selector
	})
}

func TestHotUpgradeSidecarsComeAsTwins(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("a", `{containers: [{name: envoy, image: "envoy:1", upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "empty:1"}}]}`)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(pod, containers("envoy-1 envoy-2 app"))
	p := e.newPod(pod)
	if first, second := p.Spec.Containers[0].Image, p.Spec.Containers[1].Image; first != "envoy:1" || second != "empty:1" {
		t.Errorf("the twins run %s and %s", first, second)
	}
	for key, want := range map[string]string{
		keys.SidecarSetWorkingHotUpgradeContainer:   `{"envoy":"envoy-1"}`,
		keys.SidecarSetVersionPrefix + "envoy-1":    "1",
		keys.SidecarSetVersionAltPrefix + "envoy-1": "0",
		keys.SidecarSetVersionPrefix + "envoy-2":    "0",
		keys.SidecarSetVersionAltPrefix + "envoy-2": "1",
	} {
		if got := p.Annotations[key]; got != want {
			t.Errorf("annotation %s is %s, want %s", key, got, want)
		}
	}
}

func TestASidecarStartsBeforeTheApp(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("a", `{containers: [{name: agent, image: i, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "10"}]}]}`)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `, annotations: {sim.kruise.io/ready-delay.agent: 2s}}, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(pod, containers("agent app"))
	e.newPod(pod)
	e.startedInOrder(e.launched("web"), "agent", "app")
}
