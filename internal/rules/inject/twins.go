package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// twins returns the two containers of a hot-upgrade sidecar, of which the first one works and the second one is idle. In a Pod that was
// written from another one, which of them works, and their versions, stay as they were.
func (i *injection) twins(from *v1beta1.SidecarContainer, c corev1.Container) []corev1.Container {
	first, second := sidecar.Twins(from.Name)
	working, _ := sidecar.WorkingIn(i.pod) // one that can't be read is written anew
	idle := second
	switch {
	case pod.Container(i.pod, first) == nil || pod.Container(i.pod, second) == nil || working[from.Name] != first && working[from.Name] != second:
		sidecar.SetWorking(i.pod, from.Name, first)
		i.setVersions(first, "1", "0")
		i.setVersions(second, "0", "1")
	case working[from.Name] == second:
		idle = first
	}
	var both []corev1.Container
	for _, name := range []string{first, second} {
		twin := *c.DeepCopy()
		twin.Name = name
		if name == idle {
			twin.Image = from.UpgradeStrategy.HotUpgradeEmptyImage
		}
		for _, version := range []struct{ env, annotation string }{
			{keys.SidecarSetVersionEnv, keys.SidecarSetVersionPrefix + name},
			{keys.SidecarSetVersionAltEnv, keys.SidecarSetVersionAltPrefix + name},
		} {
			twin.Env = slices.DeleteFunc(twin.Env, func(env corev1.EnvVar) bool { return env.Name == version.env })
			twin.Env = append(twin.Env, corev1.EnvVar{Name: version.env, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + version.annotation + "']"},
			}})
		}
		both = append(both, twin)
	}
	return both
}

func (i *injection) setVersions(container, version, alternative string) {
	if i.pod.Annotations == nil {
		i.pod.Annotations = map[string]string{}
	}
	i.pod.Annotations[keys.SidecarSetVersionPrefix+container] = version
	i.pod.Annotations[keys.SidecarSetVersionAltPrefix+container] = alternative
}
