package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/localcluster/cluster"
	"github.com/seed-69ecc383/kruise/localcluster/process"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

func (r *root) open() (*cluster.Cluster, error) {
	dir, err := r.folder()
	if err != nil {
		return nil, err
	}
	return cluster.Open(dir)
}

func (r *root) down() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove all it left",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := r.folder()
			if err != nil {
				return err
			}
			found, err := cluster.Down(cmd.Context(), dir, progressOn(cmd.ErrOrStderr(), time.Now()))
			if err != nil {
				return err
			}
			if !found {
				fmt.Fprintln(cmd.ErrOrStderr(), "There is no cluster in", dir)
			}
			return nil
		},
	}
}

func (r *root) stop() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "End the cluster's processes and keep its state, for up to start it again as it was",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := r.folder()
			if err != nil {
				return err
			}
			return cluster.Stop(dir, progressOn(cmd.ErrOrStderr(), time.Now()))
		},
	}
}

func (r *root) kubeconfig() *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Example: `  export KUBECONFIG=$(kruise-local kubeconfig)
  kubectl get nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			return nil
		},
	}
}

func (r *root) status() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell what runs; the exit code is 1 if something should and does not",
		Long: `Tell what runs; the exit code is 1 if something should and does not.

All clusters are told of, the one without a name first, unless --name or --dir says one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folders, err := r.folders()
			if err != nil {
				return err
			}
			healthy := true
			for i, dir := range folders {
				if i > 0 && output != "json" {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				well, err := tellStatus(cmd, dir, output)
				if err != nil {
					return err
				}
				healthy = healthy && well
			}
			if !healthy {
				return ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", `"json" for machines: one document for each cluster`)
	return cmd
}

// tellStatus prints the status of the cluster in a folder, and says whether it is well.
func tellStatus(cmd *cobra.Command, dir, output string) (healthy bool, err error) {
	c, err := cluster.Open(dir)
	if err != nil {
		return false, err
	}
	status, err := c.Status(cmd.Context())
	if err != nil {
		return false, err
	}
	if output == "json" {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(status)
	} else {
		err = printStatus(cmd, status)
	}
	return status.Healthy(), err
}

func printStatus(cmd *cobra.Command, status cluster.Status) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
	if status.Name != "" {
		fmt.Fprintf(w, "name\t%s\n", status.Name)
	}
	fmt.Fprintf(w, "folder\t%s\n", status.Dir)
	fmt.Fprintf(w, "server\t%s\t%s\n", status.Server, status.Version)
	for _, component := range status.Components {
		if component.Alive {
			fmt.Fprintf(w, "%s\trunning\tprocess %d\n", component.Name, component.Pid)
		} else {
			fmt.Fprintf(w, "%s\tdead\t%s\n", component.Name, strings.TrimSpace(component.LastLine))
		}
	}
	if status.Problem != "" {
		fmt.Fprintf(w, "API\t%s\n", status.Problem)
	} else {
		fmt.Fprintf(w, "nodes\t%d of %d Ready\n", status.ReadyNodes, status.Nodes)
	}
	return w.Flush()
}

func (r *root) logs() *cobra.Command {
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use:   "logs COMPONENT",
		Short: `Print the log of a component, or of "audit"`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			path := c.Home().LogFile(args[0])
			if _, err := os.Stat(path); err != nil || strings.ContainsRune(args[0], os.PathSeparator) {
				names, err := c.Home().Names()
				if err != nil {
					return err
				}
				return fmt.Errorf("no log of %q; there are those of %s", args[0], strings.Join(names, ", "))
			}
			if follow {
				return process.Follow(cmd.Context(), path, cmd.OutOrStdout())
			}
			tail, err := process.Tail(path, lines)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), tail)
			return err
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print all of it, and go on as it grows")
	cmd.Flags().IntVar(&lines, "tail", 200, "how many of the last lines to print")
	return cmd
}

func (r *root) node() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Silence and revive the kubelets of simulated nodes"}
	cmd.AddCommand(
		r.nodeVerb("stop NAME", "Silence a node's kubelet: the node becomes NotReady, its Pods stay as they are", "true"),
		r.nodeVerb("start NAME", "Revive a node's kubelet", ""),
	)
	return cmd
}

func (r *root) nodeVerb(use, short, stopped string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			client, err := c.Client()
			if err != nil {
				return err
			}
			node, err := client.CoreV1().Nodes().Get(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("finding node %s: %w", args[0], err)
			}
			if node.Labels[simnode.LabelNode] != "simulated" {
				return fmt.Errorf("node %s is not simulated", args[0])
			}
			value := &stopped
			if stopped == "" {
				value = nil // takes the annotation away
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"annotations": map[string]*string{simnode.AnnotationStopped: value},
			}})
			if err != nil {
				return fmt.Errorf("encoding the change of node %s: %w", args[0], err)
			}
			_, err = client.CoreV1().Nodes().Patch(cmd.Context(), args[0], types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return fmt.Errorf("changing node %s: %w", args[0], err)
			}
			return nil
		},
	}
}
