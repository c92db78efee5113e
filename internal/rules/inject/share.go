package inject

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// share mounts in a sidecar what the Pod's own containers mount, where the sidecar itself has nothing yet, and returns the variables that
// the mounts' paths refer to.
func (i *injection) share(from *v1beta1.SidecarContainer, c *corev1.Container) []corev1.EnvVar {
	taken := sets.New[string]()
	for _, mount := range c.VolumeMounts {
		taken.Insert(path.Clean(mount.MountPath))
	}
	for _, device := range c.VolumeDevices {
		taken.Insert(path.Clean(device.DevicePath))
	}
	// free takes a path, if nothing is there.
	free := func(at string) bool {
		at = path.Clean(at)
		if taken.Has(at) {
			return false
		}
		taken.Insert(at)
		return true
	}
	var needed []corev1.EnvVar
	if from.ShareVolumePolicy.Type == v1beta1.ShareVolumePolicyEnabled {
		for _, own := range i.own {
			for j := range own.VolumeMounts {
				mount := &own.VolumeMounts[j]
				if !free(mount.MountPath) {
					continue
				}
				c.VolumeMounts = append(c.VolumeMounts, *mount.DeepCopy())
				for _, name := range references(mount.SubPathExpr) {
					needed = append(needed, variable(own, name)...)
				}
			}
		}
	}
	if policy := from.ShareVolumeDevicePolicy; policy != nil && policy.Type == v1beta1.ShareVolumePolicyEnabled {
		for _, own := range i.own {
			for _, device := range own.VolumeDevices {
				if free(device.DevicePath) {
					c.VolumeDevices = append(c.VolumeDevices, device)
				}
			}
		}
	}
	return needed
}
