package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// Rights of RBAC know no nodes, so what the daemon of one node may read the daemons of all nodes may read. Credentials are therefore put
// into a NodeImage encrypted for the daemon of its node: only those that fit the image, and for each owner of a tag apart, so that nobody's
// image is pulled with the credentials of somebody else's job.

// Sealer encrypts a text for the owner of a public key; what is sealed opens in the same context only.
type Sealer func(public, text []byte, context string) ([]byte, error)

// Credentials are those that one owner of a tag has for the registry of its image.
type Credentials struct {
	// Owner is the UID of a job; empty for what users write into a NodeImage.
	Owner string
	// version changes with the Secrets that the credentials are from. It says nothing about their content.
	version string
	// text is what is sealed; empty if no Secret fits the image.
	text []byte
}

// NewCredentials returns what Secrets hold for an image. Entries that can't be read are left out, and named in the error.
func NewCredentials(owner string, image Reference, secrets []*corev1.Secret) (Credentials, error) {
	c := Credentials{Owner: owner}
	named, err := reference.ParseNormalizedNamed(image.Repository)
	if err != nil {
		return c, err
	}
	var all []registry.Credentials
	var problems []error
	for _, secret := range secrets {
		keyring, err := registry.Parse(secret)
		problems = append(problems, err)
		all = append(all, keyring.For(named)...)
		c.version += string(secret.UID) + "@" + secret.ResourceVersion + " "
	}
	if len(all) > 0 {
		c.text, err = json.Marshal(all)
		problems = append(problems, err)
	}
	return c, errors.Join(problems...)
}

// HoldsCredentials reports whether a Secret is of a type that holds credentials of registries. Nothing is taken from other Secrets: whoever
// may create a job need not be allowed to read them.
func HoldsCredentials(s *corev1.Secret) bool {
	return s.Type == corev1.SecretTypeDockerConfigJson || s.Type == corev1.SecretTypeDockercfg
}

// SealContext returns what sealed credentials are bound to.
func SealContext(node string, image Reference, owner string) string {
	return strings.Join([]string{"kruise pull credentials", node, image.Repository, image.Tag, owner}, "\n")
}

// versionOn changes with the Secrets and with the key of the node's daemon.
func (c Credentials) versionOn(n *v1beta1.NodeImage) string {
	sum := sha256.Sum256([]byte(c.version + hex.EncodeToString(n.Status.CredentialsKey)))
	return hex.EncodeToString(sum[:8])
}

// areOn reports whether a tag has the credentials as they are now, for the key that the daemon of the node has now.
func (c Credentials) areOn(n *v1beta1.NodeImage, tag *v1beta1.ImageTagSpec) bool {
	i := slices.IndexFunc(tag.Credentials, func(s v1beta1.SealedCredentials) bool { return s.Owner == c.Owner })
	if i < 0 || len(c.text) == 0 {
		return i < 0 && len(c.text) == 0
	}
	return tag.Credentials[i].Version == c.versionOn(n)
}

// put seals the credentials into a tag of a NodeImage, in place of earlier ones of their owner. Without a key of the daemon they have no
// content: the daemon waits for it as it does after a restart, when it has another key.
func (c Credentials) put(n *v1beta1.NodeImage, repository string, tag *v1beta1.ImageTagSpec, seal Sealer) {
	tag.Credentials = slices.DeleteFunc(slices.Clone(tag.Credentials), func(s v1beta1.SealedCredentials) bool { return s.Owner == c.Owner })
	if len(c.text) == 0 {
		return
	}
	sealed := v1beta1.SealedCredentials{Owner: c.Owner, Version: c.versionOn(n)}
	// A daemon that publishes what is no key gets no credentials: its pulls wait.
	sealed.Sealed, _ = seal(n.Status.CredentialsKey, c.text, SealContext(n.Name, Reference{repository, tag.Tag}, c.Owner))
	tag.Credentials = append(tag.Credentials, sealed)
}

// SealForUsers puts credentials into the tags that users have written and whose rounds go on, from the Secrets that the NodeImage names
// beside them. It returns nil if nothing changes. A Secret that can't be read is left out: find returns nil.
func SealForUsers(n *v1beta1.NodeImage, find func(v1beta1.ReferenceObject) *corev1.Secret, seal Sealer) *v1beta1.NodeImage {
	after := n.DeepCopy()
	changed := false
	for repository, image := range after.Spec.Images {
		var secrets []*corev1.Secret
		for _, of := range image.PullSecrets {
			if secret := find(of); secret != nil {
				secrets = append(secrets, secret)
			}
		}
		for i := range image.Tags {
			tag := &image.Tags[i]
			if !IsUsers(n, repository, tag) {
				continue
			}
			// What can't be read is as good as not there: the registry's answer shows in the status of the tag.
			c, _ := NewCredentials("", Reference{repository, tag.Tag}, secrets)
			if !c.areOn(n, tag) {
				c.put(n, repository, tag, seal)
				changed = true
			}
		}
	}
	if !changed {
		return nil
	}
	return after
}

// IsUsers reports whether a tag was written by a user and its round goes on.
func IsUsers(n *v1beta1.NodeImage, repository string, tag *v1beta1.ImageTagSpec) bool {
	status := StatusOf(n, repository, tag)
	return len(tag.OwnerReferences) == 0 && (status == nil || status.CompletionTime == nil)
}

// NeedsCopy reports whether a node may still read a Secret that an earlier version of Kruise has copied for it: its daemon is of that
// version too, as it has published no key, and pulls an image that lists the copy.
func NeedsCopy(n *v1beta1.NodeImage, c *corev1.Secret) bool {
	if len(n.Status.CredentialsKey) > 0 {
		return false
	}
	for repository, image := range n.Spec.Images {
		listed := slices.ContainsFunc(image.PullSecrets, func(r v1beta1.ReferenceObject) bool {
			return r.Namespace == c.Namespace && r.Name == c.Name
		})
		goesOn := slices.ContainsFunc(image.Tags, func(t v1beta1.ImageTagSpec) bool {
			status := StatusOf(n, repository, &t)
			return status == nil || status.CompletionTime == nil
		})
		if listed && goesOn {
			return true
		}
	}
	return false
}
