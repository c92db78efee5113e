// Command kruise-daemon runs on every node: it pulls images ahead, restarts containers, runs probes, and writes on Pods what their
// containers really run with.
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
	"github.com/seed-69ecc383/kruise/internal/node"
)

func main() {
	var o node.Options
	flags := flag.NewFlagSet("kruise-daemon", flag.ContinueOnError)
	o.Bind(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2) // the flag set has said why
	}
	o.FromEnvironment()
	logging.Set(os.Stderr, o.LoggingFormat, o.Verbosity)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := node.Run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kruise-daemon:", err)
		os.Exit(1)
	}
}
