package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/seed-69ecc383/kruise/localcluster/images"
	"github.com/seed-69ecc383/kruise/localcluster/internal/needs"
)

// startRegistry serves a new store and returns its host and port.
func startRegistry(t *testing.T, store images.Store) string {
	t.Helper()
	server := httptest.NewServer(&images.Server{
		Store: store, StandIns: images.NewStandIns(images.DefaultBusybox), Log: log.New(t.Output(), "", 0),
	})
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// asContainerd adds what containerd adds to a request at a mirror: the registry that is meant.
type asContainerd struct{ registry string }

func (a asContainerd) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("ns", a.registry)
	r.URL.RawQuery = query.Encode()
	return http.DefaultTransport.RoundTrip(r)
}

// pull reads an image as a node would: registry "docker.io", image "library/nginx:1.27".
func pull(address, registry, image string) (v1.Image, error) {
	ref, err := name.ParseReference(address+"/"+image, name.Insecure)
	if err != nil {
		return nil, err
	}
	return remote.Image(ref, remote.WithTransport(asContainerd{registry}))
}

func TestRegistryPullsStandIns(t *testing.T) {
	needs.RealNodes(t)
	address := startRegistry(t, images.Store(t.TempDir()))
	tests := map[string]struct{ registry, image, tag string }{
		"nginx":                     {"docker.io", "library/nginx:1.27", "1.27"},
		"nginx without a tag":       {"docker.io", "library/nginx", "latest"},
		"nginx by its short path":   {"docker.io", "nginx:alpine", "alpine"},
		"a bare system":             {"docker.io", "library/busybox:1.35", "1.35"},
		"an old system":             {"docker.io", "library/centos:6.7", "6.7"},
		"the server made for tests": {"docker.io", "library/app:v2", "v2"},
		"the sandbox of Pods":       {"registry.k8s.io", "pause:3.6", "3.6"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			image, err := pull(address, tc.registry, tc.image)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(image); err != nil {
				t.Errorf("the image is not sound: %v", err)
			}
			if got := fileIn(t, image, "etc/image-tag"); got != tc.tag+"\n" {
				t.Errorf("the image says its tag is %q, want %q", got, tc.tag)
			}
		})
	}
}

func TestRegistryDoesNotKnow(t *testing.T) {
	needs.RealNodes(t)
	address := startRegistry(t, images.Store(t.TempDir()))
	tests := map[string]struct{ registry, image string }{
		"names of others":                        {"docker.io", "library/redis:7"},
		"well-known names of other registries":   {"example.com", "library/nginx:1.27"},
		"well-known names of other users":        {"docker.io", "someone/nginx:1.27"},
		"tags said not to exist":                 {"docker.io", "library/nginx:no-such-tag"},
		"names said not to exist":                {"docker.io", "library/no-such-app:v1"},
		"tags that cannot be pulled":             {"docker.io", "library/nginx:1.27-fail-pull"},
		"digests of nothing":                     {"docker.io", "library/nginx@sha256:" + strings.Repeat("0", 64)},
		"digests of things that are no manifest": {"docker.io", "library/nginx@" + layerDigest(t, address)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := pull(address, tc.registry, tc.image)
			var answer *transport.Error
			if !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound {
				t.Fatalf("got error %v, want status 404", err)
			}
			if len(answer.Errors) != 1 || answer.Errors[0].Code != transport.ManifestUnknownErrorCode {
				t.Errorf("got errors %v, want MANIFEST_UNKNOWN", answer.Errors)
			}
		})
	}
}

// layerDigest is the digest of a blob that the registry has.
func layerDigest(t *testing.T, address string) string {
	t.Helper()
	image, err := pull(address, "docker.io", "library/nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestEachTagHasAnImageOfItsOwnThatLasts(t *testing.T) {
	needs.RealNodes(t)
	// Two registries share nothing but how they make images.
	first, second := startRegistry(t, images.Store(t.TempDir())), startRegistry(t, images.Store(t.TempDir()))
	digests := map[v1.Hash]string{}
	for _, image := range []string{"library/nginx:1.27", "library/nginx:1.28", "library/app:1.27", "library/busybox:1.27"} {
		digest := digestOf(t, first, image)
		if other, taken := digests[digest]; taken {
			t.Errorf("%s and %s are the same image", image, other)
		}
		digests[digest] = image
		if again := digestOf(t, second, image); again != digest {
			t.Errorf("%s is %s once and %s then", image, digest, again)
		}
		if _, err := pull(first, "docker.io", "anyone/anything@"+digest.String()); err != nil {
			t.Errorf("pulling %s by its digest: %v", image, err)
		}
	}
}

func digestOf(t *testing.T, address, image string) v1.Hash {
	t.Helper()
	pulled, err := pull(address, "docker.io", image)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := pulled.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestRegistryRefusesPushes(t *testing.T) {
	needs.RealNodes(t)
	address := startRegistry(t, images.Store(t.TempDir()))
	image, err := pull(address, "docker.io", "library/nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(address+"/mine:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	err = remote.Write(ref, image)
	if err == nil || !strings.Contains(err.Error(), "load-image") {
		t.Errorf("got error %v, want one that names load-image", err)
	}
}

func TestStandInsNeedAStaticBusybox(t *testing.T) {
	needs.RealNodes(t)
	for name, tc := range map[string]struct{ path, want string }{
		"none at all": {filepath.Join(t.TempDir(), "busybox"), "apt-get install -y busybox-static"},
		"no program":  {"/etc/passwd", "bad magic number"},
	} {
		t.Run(name, func(t *testing.T) {
			err := images.CheckBusybox(tc.path)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that says %q", err, tc.want)
			}
		})
	}
	if err := images.CheckBusybox(images.DefaultBusybox); err != nil {
		t.Error(err)
	}
}

// fileIn reads a file of an image's file system.
func fileIn(t *testing.T, image v1.Image, path string) string {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	found, err := readFile(content, path)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	return found
}

// readFile finds a file in a tar archive.
func readFile(archive io.Reader, path string) (string, error) {
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if err != nil {
			return "", err
		}
		if header.Name == path {
			content, err := io.ReadAll(reader)
			return string(content), err
		}
	}
}
