package inject

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// withArgs runs a manager with further arguments instead of the present one, until the test is over. Nothing else may run beside.
func (e *env) withArgs(args ...string) {
	e.Helper()
	replace := func(args ...string) {
		shared.Manager.Stop()
		e.Must(shared.Relaunch(e.Afterwards(), args...))
	}
	e.Cleanup(func() { replace() })
	replace(args...)
}

// TestSidecarsAreSortedByNameIfAskedFor has the same Pod as TestOrderIsAlwaysTheSame come out in the order of names.
func TestSidecarsAreSortedByNameIfAskedFor(t *testing.T) {
	e := newSerialEnv(t)
	e.withArgs("--feature-gates=EnableSortSidecarContainerByName=true")
	e.sidecarSet("a", `{containers: [{name: z, image: i, podInjectPolicy: BeforeAppContainer}, {name: m, image: i, podInjectPolicy: AfterAppContainer}]}`)
	e.sidecarSet("b", `{containers: [{name: c, image: i}, {name: a, image: i, podInjectPolicy: AfterAppContainer}]}`)
	pod := `{metadata: {generateName: web-, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	want := containers("c z app a m")
	e.becomes(pod, want)
	for range 50 {
		e.Must(want(e.newPod(pod, client.DryRunAll)))
	}
}

func TestDevicesAreSharedOnlyIfAskedFor(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("a", `
containers:
- {name: mounts, image: i, shareVolumePolicy: {type: enabled}}
- {name: maps, image: i, shareVolumeDevicePolicy: {type: enabled}}
`)
	pod := `
metadata: {name: web, labels: ` + e.selected() + `}
spec:
  automountServiceAccountToken: false
  volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}, {name: data, emptyDir: {}}]
  containers: [{name: app, image: i, volumeDevices: [{name: disk, devicePath: /dev/xvda}], volumeMounts: [{name: data, mountPath: /data}]}]
`
	e.becomes(pod, containers("mounts maps app"))
	p := e.newPod(pod, client.DryRunAll)
	for name, want := range map[string]corev1.Container{
		"mounts": {VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}},
		"maps":   {VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}},
	} {
		c := p.Spec.Containers[slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })]
		if diff := cmp.Diff(want, corev1.Container{VolumeMounts: c.VolumeMounts, VolumeDevices: c.VolumeDevices}); diff != "" {
			t.Errorf("container %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAMissingSourceOfVariablesIsPassedOver creates a Pod without the label that names the container which variables are taken from.
func TestAMissingSourceOfVariablesIsPassedOver(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("a", `{containers: [{name: side, image: i, transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['main']"}}, envName: A}]}]}`)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i, env: [{name: A, value: a}]}]}}`
	e.becomes(pod, func(p *corev1.Pod) error {
		if err := containers("side app")(p); err != nil {
			return err
		}
		if env := p.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != keys.SidecarInjectedEnv {
			return fmt.Errorf("the sidecar has the variables %+v", env)
		}
		return nil
	})
}

// TestManySidecarSetsAndPods creates Pods as fast as they are taken while there are many SidecarSets, three of which select each Pod: all Pods get all
// three. How long that takes, and at which size it still does, is what test/bench is for.
func TestManySidecarSetsAndPods(t *testing.T) {
	const groups, pods = 4, 100
	e := newEnv(t)
	for group := range groups {
		for n := range 3 {
			e.sidecarSet(fmt.Sprintf("%d-%d", group, n), fmt.Sprintf(`{selector: {matchLabels: {test: %s, group: "%d"}}, containers: [{name: side-%d-%d, image: i}]}`, e.Namespace, group, group, n))
		}
	}
	pod := func(n int) (text, want string) {
		group := n % groups
		text = fmt.Sprintf(`{metadata: {name: web-%d, labels: {test: %s, group: "%d"}}, spec: {containers: [{name: app, image: i}]}}`, n, e.Namespace, group)
		return text, fmt.Sprintf("side-%[1]d-0 side-%[1]d-1 side-%[1]d-2 app", group)
	}
	var results []chan error
	for worker := range 5 {
		result := make(chan error, 1)
		results = append(results, result)
		go func() {
			var problems []error
			for n := worker; n < pods; n += 5 {
				text, want := pod(n)
				p, err := e.tryPod(text)
				if err == nil {
					err = containers(want)(p)
				}
				problems = append(problems, err)
			}
			result <- errors.Join(problems...)
		}()
	}
	for _, result := range results {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
}
