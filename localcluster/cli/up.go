package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
	"github.com/seed-69ecc383/kruise/localcluster/cluster"
	"github.com/seed-69ecc383/kruise/localcluster/component"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// defaultNodes is how many simulated nodes a new cluster has if nothing is said.
const defaultNodes = 3

// upFlags are what `up` can be told.
type upFlags struct {
	config cluster.Config
	audit  bool
	args   []string
	rules  simnode.Rules
}

func (r *root) up() *cobra.Command {
	f := newUpFlags()
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, or change the one that runs",
		Long: `Bring the cluster up, and return when it can be used.

Called again, it repairs and changes what differs from what is asked: components that died are started, nodes that are
missing are added. What is not said stays as it was. The path of the kubeconfig is printed on standard output.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := r.folder()
			if err != nil {
				return err
			}
			begin := time.Now()
			progress := progressOn(cmd.ErrOrStderr(), begin)
			c, err := cluster.Up(cmd.Context(), dir, func(config *cluster.Config) error {
				config.Name = r.name
				return f.change(cmd.Flags(), config)
			}, progress)
			if err != nil {
				return err
			}
			progress("Ready")
			fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			return nil
		},
	}
	f.bind(cmd.Flags())
	return cmd
}

func newUpFlags() *upFlags { return &upFlags{rules: simnode.DefaultRules()} }

func (f *upFlags) bind(flags *pflag.FlagSet) {
	flags.IntVar(&f.config.Nodes, "nodes", defaultNodes, "simulated nodes, at least")
	flags.IntVar(&f.config.RealNodes, "real-nodes", 0, "real nodes, at least: kubelet and containerd, as root on Linux")
	flags.StringVar(&f.config.Daemon, "daemon", besides,
		"path of kruise-daemon, which runs for every real node; "+besides+": the one beside this program, if there is one; none")
	flags.StringVar(&f.config.Binaries, "binaries", os.Getenv(binaries.FolderEnv),
		"folder of installed programs of Kubernetes, such as kube-apiserver, to use in place of compiled ones (default $"+
			binaries.FolderEnv+")")
	flags.BoolVar(&f.config.Bare, "bare", false, "only etcd and the API server: no controllers, no scheduler, no nodes")
	flags.BoolVar(&f.audit, "audit", true, "log who did what, in logs/audit.log")
	flags.IntVar(&f.config.Owner, "owner", 0, "process id whose end is also the cluster's, as for tests; the folder stays")
	flags.StringArrayVar(&f.args, "k8s-args", nil, "a further flag of a component, as in kube-apiserver:--v=4; may be repeated")
	simnode.AddFlags(flags, &f.rules)
}

// change lays what the flags say over what was asked before.
func (f *upFlags) change(flags *pflag.FlagSet, config *cluster.Config) error {
	said := flags.Changed
	isNew := config.Nodes == cluster.Unset
	config.Nodes = max(config.Nodes, 0)
	if said("bare") || isNew {
		config.Bare = f.config.Bare
	}
	if config.Bare && (said("nodes") && f.config.Nodes > 0 || f.config.RealNodes > 0) {
		return errors.New("--bare leaves out the nodes: it does not go with --nodes or --real-nodes")
	}
	if said("nodes") || isNew && !said("real-nodes") && !config.Bare {
		config.Nodes = max(config.Nodes, f.config.Nodes)
	}
	if said("real-nodes") {
		config.RealNodes = max(config.RealNodes, f.config.RealNodes)
	}
	if said("daemon") || isNew {
		daemon, err := daemonProgram(f.config.Daemon)
		if err != nil {
			return err
		}
		config.Daemon = daemon
	}
	if said("binaries") || isNew {
		config.Binaries = f.config.Binaries
		if config.Binaries != "" {
			folder, err := existing(config.Binaries)
			if err != nil {
				return fmt.Errorf("reading --binaries: %w", err)
			}
			config.Binaries = folder
		}
	}
	if said("audit") {
		config.NoAudit = !f.audit
	}
	if said("owner") {
		config.Owner = f.config.Owner
	}
	if said("k8s-args") {
		args, err := parseArgs(f.args)
		if err != nil {
			return err
		}
		config.Args = args
	}
	flags.Visit(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, "sim-") {
			if config.Simulation == nil {
				config.Simulation = map[string]string{}
			}
			config.Simulation[flag.Name] = flag.Value.String()
		}
	})
	return nil
}

// besides and none are the values of --daemon that are no paths.
const besides, none = "auto", "none"

// daemonProgram is the path of the daemon that a value of --daemon means; empty for none.
func daemonProgram(value string) (string, error) {
	switch value {
	case none:
		return "", nil
	case besides:
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("looking for kruise-daemon: %w", err)
		}
		path := filepath.Join(filepath.Dir(self), "kruise-daemon")
		if _, err := os.Stat(path); err != nil {
			return "", nil // then there is none, and nobody asked for it
		}
		return path, nil
	}
	path, err := existing(value)
	if err != nil {
		return "", fmt.Errorf("reading --daemon: %w", err)
	}
	return path, nil
}

// existing returns the absolute path of a file or folder that has to be there.
func existing(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

// parseArgs sorts "component:--flag=value" by component.
func parseArgs(args []string) (map[string][]string, error) {
	known := []string{component.Etcd, component.APIServer, component.ControllerManager, component.Scheduler}
	byComponent := map[string][]string{}
	for _, arg := range args {
		name, flag, ok := strings.Cut(arg, ":")
		if !ok || !strings.HasPrefix(flag, "--") || !slices.Contains(known, name) {
			return nil, fmt.Errorf("reading --k8s-args %q: want COMPONENT:--FLAG=VALUE, where COMPONENT is one of %s", arg,
				strings.Join(known, ", "))
		}
		byComponent[name] = append(byComponent[name], flag)
	}
	return byComponent, nil
}

// progressOn prints steps with the time that has passed.
func progressOn(w io.Writer, begin time.Time) cluster.Progress {
	return func(step string) {
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(begin).Seconds(), step)
	}
}
