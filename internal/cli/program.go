// Package cli is kubectl-kruise: the commands, one in each file.
//
// Commands read with package access, ask the pure packages kinds, past and forecast what to say, and write with package screen. What they
// change they change as any user does: over the version that was read, and as the user of the kubeconfig.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
)

// Exit codes. Wire: pipelines go by them.
const (
	// exitOK means that it is done.
	exitOK = 0
	// exitFailed means that the command failed, or that what it looks at did.
	exitFailed = 1
	// exitWaits means that nothing goes on until a person acts.
	exitWaits = 2
	// exitTimeout means that it was not done in time.
	exitTimeout = 3
)

// exit ends the program with a code; its error, if there is one, is told.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// Streams are what the program reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// program is what all commands share.
type program struct {
	Streams
	cluster *access.Cluster
	screen  *screen.Screen
	now     func() time.Time
}

// completer is the name under which kubectl calls a program to complete the arguments of the plugin.
const completer = "kubectl_complete-kruise"

// Main runs the command that args name, args[0] being that of the program, and returns the exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	p := &program{Streams: s, cluster: access.New(s.Err), screen: screen.Of(s.Out, s.Getenv), now: time.Now}
	root := p.root()
	rest := args[1:]
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completer {
		rest = slices.Concat([]string{cobra.ShellCompRequestCmd}, rest)
	}
	root.SetArgs(rest)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	var code *exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		if code.err != nil {
			fmt.Fprintln(s.Err, "Error:", code.err)
		}
		return code.code
	}
	fmt.Fprintln(s.Err, "Error:", err)
	return exitFailed
}

// System returns the streams of this process.
func System() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-kruise",
		Short: "Look at rollouts of Kruise's workloads, and steer them",
		Long: `kubectl kruise shows how far rollouts are, and changes them.

An object is given as TYPE/NAME or TYPE NAME, where TYPE is any name that
kubectl knows: cloneset, clone, asts, ads, ud, sidecarset, deployment,
clonesets.v1alpha1.apps.kruise.io ... statefulset and daemonset are those of
Kubernetes; asts and ads are those of Kruise.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kruise"},
		SilenceErrors: true, SilenceUsage: true,
	}
	p.cluster.AddFlags(root.PersistentFlags())
	for _, group := range []cobra.Group{
		{ID: groupLook, Title: "Look:"}, {ID: groupSteer, Title: "Steer any workload:"}, {ID: groupRelease, Title: "Steer a Rollout:"},
	} {
		root.AddGroup(&group)
	}
	in := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	overview := &overviewOptions{}
	root.RunE = func(c *cobra.Command, _ []string) error { return p.runOverview(c.Context(), overview) }
	p.addOverviewFlags(root, overview)
	in(groupLook, p.overview(), p.tree(), p.status(), p.explain(), p.plan(), p.history(), p.diff(), p.lint(), p.doctor())
	in(groupSteer, p.pause(), p.resume(), p.set(), p.restart(), p.scaledown(), p.undo(), p.exec(), p.migrate())
	in(groupRelease, p.approve(), p.retry(), p.abort())
	root.AddCommand(p.older()...)
	return root
}

const (
	groupLook    = "look"
	groupSteer   = "steer"
	groupRelease = "release"
)

// output is the flag -o.
type output string

func addOutput(c *cobra.Command, o *output) {
	c.Flags().StringVarP((*string)(o), "output", "o", "", "write json or yaml instead of text")
	formats := cobra.FixedCompletions([]string{screen.JSON, screen.YAML}, cobra.ShellCompDirectiveNoFileComp)
	_ = c.RegisterFlagCompletionFunc("output", formats)
}

// check refuses a format that there is not.
func (o output) check() error {
	switch o {
	case screen.Text, screen.JSON, screen.YAML:
		return nil
	}
	return fmt.Errorf("-o %s: use json or yaml", string(o))
}

// show writes a value in the format that was asked for, or as text.
func (p *program) show(o output, value any, text func()) error {
	if o == screen.Text {
		text()
		return nil
	}
	return screen.Encode(p.Out, string(o), value)
}

// changed tells what was done to an object.
func (p *program) changed(o access.Object, what string, dryRun bool) {
	if dryRun {
		what += " (dry run: nothing was written)"
	}
	p.screen.Linef("%s %s", o.Arg(), what)
}

// dryRun is the flag --dry-run, as kubectl has it: none, server, or nothing behind it.
type dryRun struct{ mode string }

func (d *dryRun) add(c *cobra.Command) {
	c.Flags().StringVar(&d.mode, "dry-run", "none", "server: have the API server check the change, and write nothing; none: write it")
	c.Flags().Lookup("dry-run").NoOptDefVal = "server"
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

func (d *dryRun) on() (bool, error) {
	switch d.mode {
	case "none":
		return false, nil
	case "server", "client", "true":
		return true, nil
	}
	return false, fmt.Errorf("--dry-run=%s: use none or server", d.mode)
}
