// Package registry finds the credentials for the registry of an image in Docker configurations.
//
// Entries match an image as they do for kubelets: by host, each of whose parts may have wildcards (*.example.com), by port, and by the
// beginning of the path. The most specific entry is tried first.
package registry

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// dockerHub is the domain in the full names of Docker Hub's images; Docker configurations have others.
const dockerHub = "docker.io"

// Keyring is a set of credentials, each with a pattern of repositories.
type Keyring []Entry

// Entry is one of a Keyring.
type Entry struct {
	Pattern
	Credentials
}

// Credentials are those for one registry. Empty fields are not used.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Auth is user:password in base 64; IdentityToken and RegistryToken are what some registries give instead.
	Auth          string `json:"auth,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

// Parse returns the credentials in a Secret of one of the two types that hold Docker configurations. Entries that can't be read are left
// out, and named in the error.
func Parse(secret *corev1.Secret) (Keyring, error) {
	var config struct {
		Auths map[string]Credentials `json:"auths"`
	}
	var err error
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config)
	case corev1.SecretTypeDockercfg:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &config.Auths)
	default:
		return nil, fmt.Errorf("reading Secret %s/%s: it is of type %q, which holds no credentials of registries",
			secret.Namespace, secret.Name, secret.Type)
	}
	if err != nil {
		// The error of the JSON decoder may quote the content.
		return nil, fmt.Errorf("reading Secret %s/%s: it does not hold a Docker configuration", secret.Namespace, secret.Name)
	}
	var ring Keyring
	var problems []error
	for key, login := range config.Auths {
		credentials, err := login.decoded()
		if err != nil {
			problems = append(problems, fmt.Errorf("reading Secret %s/%s, entry %s: %w", secret.Namespace, secret.Name, key, err))
			continue
		}
		host, within := splitKey(key)
		ring = append(ring, Entry{Pattern: Pattern{host: host, path: within}, Credentials: credentials})
	}
	slices.SortFunc(ring, func(a, b Entry) int { // the longest first, which is the most specific of those that match the same image
		return cmp.Or(cmp.Compare(len(b.host+b.path), len(a.host+a.path)), cmp.Compare(a.host+a.path, b.host+b.path))
	})
	return ring, errors.Join(problems...)
}

// decoded returns the credentials with auth split into user and password.
func (c Credentials) decoded() (Credentials, error) {
	auth := c.Auth
	c.Auth = ""
	if auth == "" || c.Username != "" {
		return c, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(auth)
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
func (r Keyring) For(named reference.Named) []Credentials {
	var out []Credentials
	for _, e := range r {
		if e.Matches(named) {
			out = append(out, e.Credentials)
		}
	}
	return out
}

// Pattern says which repositories credentials are for: a host, each of whose parts may have wildcards, a port if it has one, and the
// beginning of a path.
//
// Example: *.example.com:5000/team is for a.example.com:5000/team/app, and neither for example.com:5000/team/app nor for
// a.example.com/team/app.
type Pattern struct{ host, path string }

// ParsePattern reads a pattern as kubelets write it in their configuration.
func ParsePattern(text string) (Pattern, error) {
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	host, within, _ := strings.Cut(text, "/")
	name, _, _ := strings.Cut(host, ":")
	for part := range strings.SplitSeq(name, ".") {
		if _, err := path.Match(part, ""); err != nil || part == "" {
			return Pattern{}, fmt.Errorf("%q is no pattern of images", text)
		}
	}
	return Pattern{host: host, path: within}, nil
}

// Matches reports whether a repository is one that the pattern is for.
func (p Pattern) Matches(named reference.Named) bool {
	return hostMatches(p.host, reference.Domain(named)) && strings.HasPrefix(reference.Path(named), p.path)
}

// hostMatches compares part by part: a wildcard never reaches over a dot.
func hostMatches(pattern, host string) bool {
	patternName, patternPort, _ := strings.Cut(pattern, ":")
	name, port, _ := strings.Cut(host, ":")
	wanted, parts := strings.Split(patternName, "."), strings.Split(name, ".")
	if patternPort != port || len(wanted) != len(parts) {
		return false
	}
	for i := range parts {
		if matched, err := path.Match(wanted[i], parts[i]); err != nil || !matched {
			return false
		}
	}
	return true
}
