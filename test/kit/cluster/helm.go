package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Helm runs Helm, of the version that tools/chart has, as the cluster's administrator, and returns what it printed. It runs in the
// root of the repository, where the charts are in charts.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(root, "bin", "helm")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("helm is not built: run make bin/helm (%w)", err)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("running helm %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// AccountKubeconfig writes a kubeconfig with which a process acts as a service account.
func (c *Cluster) AccountKubeconfig(ctx context.Context, account types.NamespacedName, path string) error {
	_, err := c.accountKubeconfig(ctx, account, nil, path)
	return err
}
