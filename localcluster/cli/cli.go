// Package cli is the command line of kruise-local.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
	"github.com/seed-69ecc383/kruise/localcluster/cluster"
)

// ErrReported says that what went wrong was printed already: only the exit code is left to say.
var ErrReported = errors.New("reported")

// root is what all verbs share: which cluster is meant.
type root struct{ dir, name string }

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
	cmd.PersistentFlags().StringVar(&r.name, "name", "",
		"name of one cluster among several, such as member-1; each has a folder, ports and a context of kubectl of its own")
	cmd.AddCommand(r.up(), r.stop(), r.down(), r.status(), r.kubeconfig(), r.logs(), r.node(), r.loadImage(), r.kubectl())
	return cmd
}

// folder is where the cluster is.
func (r *root) folder() (string, error) {
	dir := r.dir
	switch {
	case dir != "" && r.name != "":
		return "", errors.New("--dir and --name both say which cluster is meant: use one of them")
	case r.name != "":
		if wrong := validation.IsDNS1123Label(r.name); len(wrong) > 0 {
			return "", fmt.Errorf("reading --name %q: %s", r.name, strings.Join(wrong, ", "))
		}
		dir = filepath.Join(namedDir(), r.name)
	case dir == "":
		dir = defaultDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	return dir, nil
}

// folders are where the clusters are that are meant: the one that --dir or --name says, or else all that are there, the one without a name
// first.
func (r *root) folders() ([]string, error) {
	dir, err := r.folder()
	if err != nil || r.dir != "" || r.name != "" {
		return []string{dir}, err
	}
	entries, err := os.ReadDir(namedDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listing the clusters: %w", err)
	}
	var folders []string
	for _, entry := range entries {
		folders = append(folders, filepath.Join(namedDir(), entry.Name()))
	}
	folders = append([]string{dir}, folders...)
	there := slices.DeleteFunc(slices.Clone(folders), func(dir string) bool {
		_, err := cluster.Open(dir)
		return errors.Is(err, cluster.ErrNotFound)
	})
	if len(there) == 0 {
		return folders[:1], nil // whose absence is then what there is to say
	}
	return there, nil
}

// defaultDir is the folder of the cluster without a name, where programs of a user keep what lasts between runs.
func defaultDir() string { return filepath.Join(stateDir(), "kruise-local") }

// namedDir has the folders of the clusters with names. It is not in the folder of the one without, whose content is that cluster's.
func namedDir() string { return filepath.Join(stateDir(), "kruise-local-clusters") }

func stateDir() string {
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return state
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state")
	}
	return os.TempDir()
}
