// Package credentials finds the credentials for the registry of an image: in Secrets, which it reads by name for each pull and never keeps,
// and from credential provider plugins, which it runs by the protocol of kubelets: a request in JSON on the standard input, the answer in
// JSON on the standard output. So one configuration of plugins serves the kubelet and Kruise.
//
// Its promise: a plugin runs only when no cached answer is valid, and once at a time; and one that hangs, fails or answers nonsense takes
// no more than half of the time that is left, and keeps no other credentials from being tried. Plugins that need a token of the Pod's
// account can't be used, because there is no Pod yet.
package credentials

import (
	"context"
	"errors"
	"fmt"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// Finder finds credentials.
type Finder struct {
	// Secrets reads Secrets from the API server, without a cache.
	Secrets client.Reader
	Plugins *Plugins
}

// Find returns the credentials for a repository: those in the named Secrets, and then those of the plugins. What can't be read is left out,
// and named in the error; the other credentials are valid all the same.
func (f Finder) Find(ctx context.Context, repository string, secrets []v1beta1.ReferenceObject) ([]registry.Credentials, error) {
	image, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		return nil, fmt.Errorf("reading image name %q: %w", repository, err)
	}
	found, unread := fromSecrets(ctx, f.Secrets, image, secrets)
	more, failed := f.Plugins.For(ctx, image)
	return append(found, more...), errors.Join(unread, failed)
}

// fromSecrets returns the credentials for a repository in the named Secrets, in their order. They are read one by one for each pull, so
// that a change takes effect at once and nothing secret is kept. What can't be read is left out, and named in the error.
func fromSecrets(
	ctx context.Context, reader client.Reader, image reference.Named, secrets []v1beta1.ReferenceObject,
) (out []registry.Credentials, err error) {
	var problems []error
	for _, of := range secrets {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: of.Namespace, Name: of.Name}
		// The API server's own cache is new enough: a Secret is older than the pull that names it.
		if err := reader.Get(ctx, key, secret, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}); err != nil {
			problems = append(problems, fmt.Errorf("reading Secret %s: %w", key, err))
			continue
		}
		ring, err := registry.Parse(secret)
		problems = append(problems, err)
		out = append(out, ring.For(image)...)
	}
	return out, errors.Join(problems...)
}
