package keyring

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// Secrets reads credentials from Secrets, one by one: each pull asks anew, so that what has changed counts at once and nothing secret is kept.
type Secrets struct {
	// Reader reads from the API server, without a cache.
	Reader client.Reader
}

// Credentials returns those that may open a repository, out of the named Secrets in their order. What can't be read is left out and told in the
// error, which says nothing against the rest.
func (s Secrets) Credentials(ctx context.Context, repository string, secrets []v1beta1.ReferenceObject) ([]cri.Credentials, error) {
	var out []cri.Credentials
	var problems []error
	for _, reference := range secrets {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
		// The API server's own cache will do: a Secret is older than the pull that names it.
		if err := s.Reader.Get(ctx, key, secret, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}); err != nil {
			problems = append(problems, fmt.Errorf("reading Secret %s: %w", key, err))
			continue
		}
		ring, err := Parse(secret)
		found, matchErr := ring.For(repository)
		problems = append(problems, err, matchErr)
		out = append(out, found...)
	}
	return out, errors.Join(problems...)
}
