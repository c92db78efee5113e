package convert

import (
	"encoding/json"
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// NodeImageToHub fills dst with what src means. The annotation that stands for the modes of the references to Secrets is taken off: it says
// nothing in the hub version.
func NodeImageToHub(src *v1alpha1.NodeImage, dst *v1beta1.NodeImage) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1beta1.NodeImageSpec{}
	if in.Images != nil {
		dst.Spec.Images = map[string]v1beta1.ImageSpec{}
	}
	modes := readSecretModes(src.Annotations[keys.NodeImageSecretModes])
	for name, image := range in.Images {
		out := v1beta1.ImageSpec{Tags: image.Tags, SandboxConfig: image.SandboxConfig}
		for _, secret := range image.PullSecrets {
			out.PullSecrets = append(out.PullSecrets, v1beta1.ReferenceObject{
				Namespace: secret.Namespace, Name: secret.Name, Mode: modes.of(name, secret),
			})
		}
		dst.Spec.Images[name] = out
	}
	dst.Annotations = without(dst.Annotations, keys.NodeImageSecretModes)
	src.Status.DeepCopyInto(&dst.Status)
}

// NodeImageFromHub fills dst with what src means. The modes alone decide on the annotation that stands for them.
func NodeImageFromHub(src *v1beta1.NodeImage, dst *v1alpha1.NodeImage) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1alpha1.NodeImageSpec{}
	if in.Images != nil {
		dst.Spec.Images = map[string]v1alpha1.ImageSpec{}
	}
	modes := secretModes{}
	for name, image := range in.Images {
		out := v1alpha1.ImageSpec{Tags: image.Tags, SandboxConfig: image.SandboxConfig}
		for _, secret := range image.PullSecrets {
			out.PullSecrets = append(out.PullSecrets, v1alpha1.ReferenceObject{Namespace: secret.Namespace, Name: secret.Name})
			if secret.Mode != "" {
				modes[name] = append(modes[name], secret)
			}
		}
		dst.Spec.Images[name] = out
	}
	dst.Annotations = without(dst.Annotations, keys.NodeImageSecretModes)
	if len(modes) > 0 {
		dst.Annotations = with(dst.Annotations, keys.NodeImageSecretModes, modes.String())
	}
	src.Status.DeepCopyInto(&dst.Status)
}

// secretModes are the references that have a mode, by image.
type secretModes map[string][]v1beta1.ReferenceObject

// readSecretModes returns no modes for what it can't read: a user of the older version may have written it.
func readSecretModes(text string) secretModes {
	modes := secretModes{}
	if text == "" || json.Unmarshal([]byte(text), &modes) != nil {
		return secretModes{}
	}
	return modes
}

func (m secretModes) of(image string, secret v1alpha1.ReferenceObject) v1beta1.ReferenceMode {
	i := slices.IndexFunc(m[image], func(r v1beta1.ReferenceObject) bool {
		return r.Namespace == secret.Namespace && r.Name == secret.Name
	})
	if i < 0 {
		return ""
	}
	return m[image][i].Mode
}

func (m secretModes) String() string {
	text, _ := json.Marshal(m) // strings alone, which can be written
	return string(text)
}
