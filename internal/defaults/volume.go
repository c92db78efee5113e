package defaults

import corev1 "k8s.io/api/core/v1"

// volume fills in the defaults of one volume. One without any source is an empty folder.
func volume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	files(v)
	devices(v)
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		fill(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits)
		roundUp(claim.Resources.Requests)
	}
}

// files are the volumes that show things of the cluster or of the node.
func files(v *corev1.Volume) {
	if v.HostPath != nil {
		fill(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		fill(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		fill(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		fill(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		downward(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	fill(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if source.DownwardAPI != nil {
			downward(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			fill(&source.ServiceAccountToken.ExpirationSeconds, tokenExpirationSeconds)
		}
	}
}

func downward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fieldRef(items[i].FieldRef)
	}
}

// devices are the volumes of storage systems.
func devices(v *corev1.Volume) {
	if v.ISCSI != nil {
		fillText(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		fillText(&v.RBD.RBDPool, "rbd")
		fillText(&v.RBD.RadosUser, "admin")
		fillText(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		fill(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		fill(&v.AzureDisk.FSType, "ext4")
		fill(&v.AzureDisk.ReadOnly, false)
		fill(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		fillText(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fillText(&v.ScaleIO.FSType, "xfs")
	}
}
