// Package command is the frame of Kruise's commands that run until somebody ends them.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/seed-69ecc383/kruise/internal/logging"
)

// Options are what a command is started with.
type Options interface {
	// Bind declares the flags.
	Bind(*flag.FlagSet)
	// FromEnvironment reads the options that the environment holds.
	FromEnvironment()
	// Logging returns how the command logs.
	Logging() logging.Options
}

// Exit codes of commands.
const (
	ok     = 0
	failed = 1
	misuse = 2
)

// Main reads the options of a command, runs it until it ends by itself or a signal asks it to, and returns its exit code. It writes logs
// and errors to stderr.
func Main(args []string, stderr io.Writer, o Options, run func(context.Context) error) int {
	name, args := args[0], args[1:]
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.Bind(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return ok
	} else if err != nil {
		return misuse // the flag set has said why
	}
	o.FromEnvironment()
	o.Logging().Set(stderr)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return failed
	}
	return ok
}
