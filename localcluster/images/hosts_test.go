package images_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/localcluster/images"
)

func TestEveryRegistryIsOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs.d")
	for range 2 { // a second time changes nothing
		if err := images.WriteHosts(dir, "127.0.0.1:5000"); err != nil {
			t.Fatal(err)
		}
	}
	want := `server = "http://127.0.0.1:5000"

[host."http://127.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
`
	for _, registry := range []string{"docker.io", "registry.k8s.io", "_default"} {
		got, err := os.ReadFile(filepath.Join(dir, registry, "hosts.toml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("hosts.toml of %s differs (-want +got):\n%s", registry, diff)
		}
	}
}
