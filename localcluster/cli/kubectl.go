package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/seed-69ecc383/kruise/localcluster/component"
)

func (r *root) kubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ARGS...",
		Short: "Run kubectl, of the same release, as the cluster's administrator",
		Example: `  kruise-local kubectl get pods -w
  kruise-local --dir /tmp/other kubectl get nodes   # --dir comes first: what follows is kubectl's`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			program, err := c.Program(cmd.Context(), component.Kubectl)
			if err != nil {
				return err
			}
			if err := os.Setenv("KUBECONFIG", c.Kubeconfig()); err != nil {
				return fmt.Errorf("telling kubectl of the cluster: %w", err)
			}
			// In place of this process, not below it: signals, the terminal and the exit code are kubectl's own.
			if err := unix.Exec(program.Path, append([]string{component.Kubectl}, args...), os.Environ()); err != nil {
				return fmt.Errorf("becoming kubectl: %w", err)
			}
			return nil
		},
	}
}
