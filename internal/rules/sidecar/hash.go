package sidecar

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Hashes are the hashes of a SidecarSet's containers.
type Hashes struct {
	// Full changes with anything about a container that stays in the Pod.
	Full string
	// WithoutImage does not change with images: Pods that have it can be updated in place.
	WithoutImage string
}

// HashesOf returns the hashes of containers, which must have their defaults.
//
// Wire: what is hashed is the JSON of the containers in the order of the fields of their type, together with the init containers if one of
// them stays in the Pod. Pods hold these hashes; another one would make every Pod of a cluster outdated.
func HashesOf(spec *v1beta1.SidecarSetSpec) (Hashes, error) {
	hashed := struct {
		Containers     []v1beta1.SidecarContainer `json:"containers"`
		InitContainers []v1beta1.SidecarContainer `json:"initContainers,omitempty"`
	}{Containers: spec.Containers}
	for i := range spec.InitContainers {
		if IsNative(&spec.InitContainers[i]) {
			hashed.InitContainers = spec.InitContainers
		}
	}
	var hashes Hashes
	var err error
	if hashes.Full, err = hashOf(hashed); err != nil {
		return Hashes{}, err
	}
	hashed.Containers, hashed.InitContainers = withoutImages(hashed.Containers), withoutImages(hashed.InitContainers)
	hashes.WithoutImage, err = hashOf(hashed)
	return hashes, err
}

func withoutImages(containers []v1beta1.SidecarContainer) []v1beta1.SidecarContainer {
	if containers == nil {
		return nil
	}
	out := make([]v1beta1.SidecarContainer, len(containers))
	copy(out, containers)
	for i := range out {
		out[i].Image = ""
	}
	return out
}

func hashOf(value any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding the sidecars: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return revision.Encode(hex.EncodeToString(sum[:])), nil
}

// Stamp notes the hashes of the present containers on the SidecarSet.
func Stamp(set *v1beta1.SidecarSet) error {
	hashes, err := HashesOf(&set.Spec)
	if err != nil {
		return err
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[keys.SidecarSetHash] = hashes.Full
	set.Annotations[keys.SidecarSetHashWithoutImage] = hashes.WithoutImage
	return nil
}

// IsNative reports whether an init container stays in the Pod beside its containers.
func IsNative(c *v1beta1.SidecarContainer) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
