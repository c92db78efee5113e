package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// defaultContainer is the annotation of a Pod with the container that is meant where none is named. Users write it for kubectl.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// execution is what the flags of exec say.
type execution struct {
	container, sidecar string
	stdin, tty         bool
}

func (p *program) exec() *cobra.Command {
	var x execution
	c := &cobra.Command{
		Use:   "exec POD|TYPE/NAME [-S SIDECAR|-c CONTAINER] -- COMMAND",
		Short: "Run a command in a container, also in that of a hot-upgrade sidecar that works",
		Long: `Run a command in a container of a Pod, or of one Pod in service of a workload.

A sidecar with a hot upgrade has two containers, of which one works and the
other one waits. With --sidecar and the name that the SidecarSet has for it,
the command runs in the one that works.

The exit code is that of the command.`,
		Example: `  kubectl kruise exec web-x7k2p --sidecar proxy -- proxy-admin stats
  kubectl kruise exec cloneset/web -S proxy -it -- sh`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			dash := c.ArgsLenAtDash()
			if dash < 1 || dash == len(args) {
				return errors.New("give a Pod and a command: exec POD -- COMMAND")
			}
			in, err := p.podFor(c.Context(), args[:dash])
			if err != nil {
				return err
			}
			container, err := containerFor(in, x.container, x.sidecar)
			if err != nil {
				return err
			}
			code, err := p.runIn(c.Context(), in, container, args[dash:], x)
			if err != nil || code == exitOK {
				return err
			}
			return &exit{code: code}
		},
	}
	c.Flags().StringVarP(&x.container, "container", "c", "", "the name of the container")
	c.Flags().StringVarP(&x.sidecar, "sidecar", "S", "", "the name of the sidecar in its SidecarSet")
	c.Flags().BoolVarP(&x.stdin, "stdin", "i", false, "pass the standard input on")
	c.Flags().BoolVarP(&x.tty, "tty", "t", false, "give the command a terminal")
	return c
}

// podFor returns the Pod that arguments name: by its name, or as one in service of a workload.
func (p *program) podFor(ctx context.Context, named []string) (*corev1.Pod, error) {
	name, alone := podAlone(named)
	if !alone && len(named) == 1 && !strings.Contains(named[0], "/") {
		name, alone = named[0], true
	}
	if !alone {
		o, err := p.cluster.One(ctx, named, "")
		if err != nil {
			return nil, err
		}
		pods, err := p.pods(ctx, o)
		if err != nil {
			return nil, err
		}
		return inService(o.Arg(), pods)
	}
	reader, err := p.cluster.Client()
	if err != nil {
		return nil, err
	}
	namespace, err := p.cluster.Namespace()
	if err != nil {
		return nil, err
	}
	found := &corev1.Pod{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
		return nil, fmt.Errorf("reading pod/%s: %w", name, err)
	}
	return found, nil
}

// inService returns the first Pod by name that is ready, or else that runs.
func inService(of string, pods []corev1.Pod) (*corev1.Pod, error) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	i := slices.IndexFunc(pods, func(one corev1.Pod) bool { return one.DeletionTimestamp == nil && pod.IsReady(&one) })
	if i < 0 {
		i = slices.IndexFunc(pods, func(one corev1.Pod) bool {
			return one.DeletionTimestamp == nil && one.Status.Phase == corev1.PodRunning
		})
	}
	if i < 0 {
		return nil, fmt.Errorf("%s has no Pod that runs", of)
	}
	return &pods[i], nil
}

// containerFor returns the container that is meant: by its name; by the sidecar that works in it; or else that which the Pod itself says,
// or its first.
func containerFor(in *corev1.Pod, container, named string) (string, error) {
	var all []string
	for i := range in.Spec.Containers {
		all = append(all, in.Spec.Containers[i].Name)
	}
	switch {
	case container != "" && named != "":
		return "", errors.New("--container and --sidecar are given: give only one of them")
	case named != "":
		working, err := sidecar.WorkingIn(in)
		if err != nil {
			return "", fmt.Errorf("finding the container of sidecar %s in Pod %s: %w", named, in.Name, err)
		}
		container = named // a sidecar without a hot upgrade has one container of its name
		if at, hot := working[named]; hot {
			container = at
		}
		if !slices.Contains(all, container) {
			return "", fmt.Errorf("pod %s has no sidecar %q: its containers are %s", in.Name, named, strings.Join(all, ", "))
		}
	case container == "":
		if container = in.Annotations[defaultContainer]; !slices.Contains(all, container) && len(all) > 0 {
			container = all[0]
		}
	}
	if !slices.Contains(all, container) {
		return "", fmt.Errorf("pod %s has no container %q: it has %s", in.Name, container, strings.Join(all, ", "))
	}
	return container, nil
}

// runIn runs a command with the streams of the program.
func (p *program) runIn(ctx context.Context, in *corev1.Pod, container string, args []string, x execution) (int, error) {
	cmd := access.Command{Namespace: in.Namespace, Pod: in.Name, Container: container, Args: args, Out: p.Out, Err: p.Err}
	if x.stdin {
		cmd.In = p.In
	}
	if !x.tty {
		return p.cluster.Exec(ctx, cmd)
	}
	terminal, is := p.In.(*os.File)
	if !x.stdin || !is || !term.IsTerminal(int(terminal.Fd())) {
		return 0, errors.New("--tty needs --stdin and a terminal: leave --tty out")
	}
	before, err := term.MakeRaw(int(terminal.Fd()))
	if err != nil {
		return 0, fmt.Errorf("preparing the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(terminal.Fd()), before) }() // there is nobody left to tell
	cmd.Size = func() (int, int, error) { return term.GetSize(int(terminal.Fd())) }
	return p.cluster.Exec(ctx, cmd)
}
