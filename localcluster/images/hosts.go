package images

import (
	"fmt"
	"os"
	"path/filepath"
)

// hostsFile sends pulls to one server, over plain HTTP as it is on the loopback address.
const hostsFile = `server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`

// WriteHosts writes the folder that containerd's registry.config_path names, so that every image name is looked up at
// the registry at address ("127.0.0.1:5000") and nowhere else.
//
// "_default" is every registry without a folder of its own; the two that manifests name most have one, so that whoever
// looks for them finds them.
func WriteHosts(dir, address string) error {
	content := fmt.Appendf(nil, hostsFile, address)
	for _, registry := range []string{"docker.io", "registry.k8s.io", "_default"} {
		folder := filepath.Join(dir, registry)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("telling containerd of the registry: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, "hosts.toml"), content, 0o644); err != nil {
			return fmt.Errorf("telling containerd of the registry: %w", err)
		}
	}
	return nil
}
