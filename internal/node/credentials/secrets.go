package credentials

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// dockerHub is the domain in the full names of Docker Hub's images; Docker configurations have others.
const dockerHub = "docker.io"

// Keyring is a set of credentials, each with a pattern of repositories.
type Keyring []entry

type entry struct {
	Pattern
	cri.Credentials
}

// login is one entry of a Docker configuration.
type login struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Parse returns the credentials in a Secret of one of the two types that hold Docker configurations. Entries that can't be read are left
// out, and named in the error.
func Parse(secret *corev1.Secret) (Keyring, error) {
	var config struct {
		Auths map[string]login `json:"auths"`
	}
	var err error
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config)
	case corev1.SecretTypeDockercfg:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &config.Auths)
	default:
		return nil, fmt.Errorf("reading Secret %s/%s: it is of type %q, which holds no credentials of registries", secret.Namespace, secret.Name, secret.Type)
	}
	if err != nil {
		// The error of the JSON decoder may quote the content.
		return nil, fmt.Errorf("reading Secret %s/%s: it does not hold a Docker configuration", secret.Namespace, secret.Name)
	}
	var ring Keyring
	var problems []error
	for key, login := range config.Auths {
		credentials, err := login.credentials()
		if err != nil {
			problems = append(problems, fmt.Errorf("reading Secret %s/%s, entry %s: %w", secret.Namespace, secret.Name, key, err))
			continue
		}
		host, within := splitKey(key)
		ring = append(ring, entry{Pattern: Pattern{host: host, path: within}, Credentials: credentials})
	}
	slices.SortFunc(ring, func(a, b entry) int { // the longest first, which is the most specific of those that match the same image
		return cmp.Or(cmp.Compare(len(b.host+b.path), len(a.host+a.path)), cmp.Compare(a.host+a.path, b.host+b.path))
	})
	return ring, errors.Join(problems...)
}

func (l login) credentials() (cri.Credentials, error) {
	c := cri.Credentials{Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken}
	if l.Auth == "" || c.Username != "" {
		return c, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(l.Auth)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(l.Auth)
	}
	user, password, found := strings.Cut(string(decoded), ":")
	if err != nil || !found {
		return c, errors.New("auth is not USER:PASSWORD in base 64")
	}
	c.Username, c.Password = user, strings.TrimRight(password, "\x00")
	return c, nil
}

// splitKey splits the key of an entry, which tools write in many ways, into host and path: https://index.docker.io/v1/ is docker.io and no
// path.
func splitKey(key string) (host, within string) {
	if _, rest, found := strings.Cut(key, "://"); found {
		key = rest
	}
	host, within, _ = strings.Cut(key, "/")
	if version, rest, _ := strings.Cut(within, "/"); version == "v1" || version == "v2" {
		within = rest
	}
	if host == "index."+dockerHub || host == "registry-1."+dockerHub {
		host = dockerHub
	}
	return host, within
}

// For returns the credentials for a repository, the most specific first.
func (r Keyring) For(named reference.Named) []cri.Credentials {
	var out []cri.Credentials
	for _, e := range r {
		if e.Matches(named) {
			out = append(out, e.Credentials)
		}
	}
	return out
}

// fromSecrets returns the credentials for a repository in the named Secrets, in their order. They are read one by one for each pull, so
// that a change takes effect at once and nothing secret is kept. What can't be read is left out, and named in the error.
func fromSecrets(
	ctx context.Context, reader client.Reader, image reference.Named, secrets []v1beta1.ReferenceObject,
) (out []cri.Credentials, err error) {
	var problems []error
	for _, of := range secrets {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: of.Namespace, Name: of.Name}
		// The API server's own cache is new enough: a Secret is older than the pull that names it.
		if err := reader.Get(ctx, key, secret, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}); err != nil {
			problems = append(problems, fmt.Errorf("reading Secret %s: %w", key, err))
			continue
		}
		ring, err := Parse(secret)
		problems = append(problems, err)
		out = append(out, ring.For(image)...)
	}
	return out, errors.Join(problems...)
}
