// Command kruise-rollout runs the controllers and the webhooks of Rollouts. It needs none of the other kinds of Kruise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/rolloutmanager"
)

func main() {
	var o rolloutmanager.Options
	flags := flag.NewFlagSet("kruise-rollout", flag.ContinueOnError)
	o.Bind(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2) // the flag set has said why
	}
	o.FromEnvironment()
	logging.Set(os.Stderr, o.LoggingFormat, o.Verbosity)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rolloutmanager.Run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kruise-rollout:", err)
		os.Exit(1)
	}
}
