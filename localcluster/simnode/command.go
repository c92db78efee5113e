package simnode

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/seed-69ecc383/kruise/localcluster/provision"
)

// AddFlags binds the flags that set rules.
func AddFlags(flags *pflag.FlagSet, r *Rules) {
	flags.DurationVar(&r.Start, "sim-start", r.Start, "time from a Pod's arrival on a simulated node until its containers start")
	flags.DurationVar(&r.Init, "sim-init", r.Init, "run time of an init container")
	flags.DurationVar(&r.Restart, "sim-restart", r.Restart, "time from a container's end until its successor runs")
	flags.DurationVar(&r.Stop, "sim-stop", r.Stop, "time a deleted Pod's containers take to stop")
	flags.DurationVar(&r.Resize, "sim-resize", r.Resize, "time until changed resources are in effect")
	flags.DurationVar(&r.Ready, "sim-ready", r.Ready, "time a container runs before it is ready")
	flags.DurationVar(&r.RunFor, "sim-run-for", r.RunFor, "run time of the containers of Pods that complete")
	flags.DurationVar(&r.Pull, "sim-pull", r.Pull, "time a node takes to pull an image that a NodeImage asks for")
	flags.DurationVar(&r.Backoff, "sim-backoff", r.Backoff, "first pause of a crash loop; it doubles up to five minutes")
	flags.Float64Var(&r.Jitter, "sim-jitter", r.Jitter, "share by which delays vary, 0 to 1")
	flags.Uint64Var(&r.Seed, "sim-seed", r.Seed, "seed of the variation")
	flags.BoolVar(&r.Terse, "sim-terse", r.Terse, "report Pods when they run and not when they arrive or end, for measurements at scale")
}

// NewCommand is the simulator as a program: all simulated kubelets, and the provisioner of claims.
func NewCommand() *cobra.Command {
	rules := DefaultRules()
	var kubeconfig, volumes string
	cmd := &cobra.Command{
		Use:   "simulator",
		Short: "Plays the kubelets of simulated nodes and provides volumes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("reading kubeconfig: %w", err)
			}
			return run(cmd.Context(), config, volumes, rules)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "how to reach the cluster")
	cmd.Flags().StringVar(&volumes, "volumes", "", "folder of the volumes that claims get")
	AddFlags(cmd.Flags(), &rules)
	return cmd
}

func run(ctx context.Context, config *rest.Config, volumes string, rules Rules) error {
	if ctx == nil {
		ctx = context.Background()
	}
	kubeletClient, err := clientFor(config, "kruise-local-kubelet")
	if err != nil {
		return err
	}
	volumeClient, err := clientFor(config, "kruise-local-provisioner")
	if err != nil {
		return err
	}
	kubelets, err := NewKubelets(kubeletClient, rules, version.Get().GitVersion)
	if err != nil {
		return err
	}
	pulls, err := pullsFor(config, rules, kubelets)
	if err != nil {
		return err
	}
	provisioner, err := provision.New(volumeClient, volumes)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kubelets.Run(ctx) })
	group.Go(func() error { return pulls.Run(ctx) })
	group.Go(func() error { return provisioner.Run(ctx) })
	return group.Wait()
}

// pullsFor makes the daemons of the nodes that the kubelets are of.
func pullsFor(config *rest.Config, rules Rules, kubelets *Kubelets) (*Pulls, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "kruise-local-daemon"
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client %s: %w", config.UserAgent, err)
	}
	pulls, err := NewPulls(client, rules, func(node string) bool { return kubelets.node(node) != nil })
	if err != nil {
		return nil, err
	}
	kubelets.awake = pulls.Wake
	return pulls, nil
}

// clientFor is a client without a rate limit of its own: how much the server can take is the server's business.
func clientFor(config *rest.Config, agent string) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client %s: %w", agent, err)
	}
	return client, nil
}
