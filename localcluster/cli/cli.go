// Package cli is the command line of kruise-local.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
)

// ErrReported says that what went wrong was printed already: only the exit code is left to say.
var ErrReported = errors.New("reported")

// root is what all verbs share.
type root struct{ dir string }

// NewCommand is kruise-local.
func NewCommand() *cobra.Command {
	r := &root{}
	cmd := &cobra.Command{
		Use:           "kruise-local",
		Short:         "Run a Kubernetes cluster on this machine",
		Long:          "Run a Kubernetes cluster on this machine: a real control plane, with simulated nodes or real ones.",
		Version:       binaries.Wanted(),
		SilenceUsage:  true,
		SilenceErrors: true,
		// The flags before a verb are this program's even where those after it are another's, as for kubectl.
		TraverseChildren: true,
	}
	cmd.PersistentFlags().StringVar(&r.dir, "dir", "",
		"folder of the cluster (default "+defaultDir()+"); each folder is a cluster of its own")
	cmd.AddCommand(r.up(), r.down(), r.status(), r.kubeconfig(), r.logs(), r.node(), r.loadImage(), r.kubectl())
	return cmd
}

// folder is where the cluster is.
func (r *root) folder() (string, error) {
	dir := r.dir
	if dir == "" {
		dir = defaultDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	return dir, nil
}

// defaultDir is where programs of a user keep what lasts between runs.
func defaultDir() string {
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "kruise-local")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "kruise-local")
	}
	return filepath.Join(os.TempDir(), "kruise-local")
}
