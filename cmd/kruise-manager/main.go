// Command kruise-manager runs the controllers and the webhooks of Kruise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the time zones of cron jobs, wherever the manager runs

	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/manager"
)

func main() {
	var o manager.Options
	flags := flag.NewFlagSet("kruise-manager", flag.ContinueOnError)
	o.Bind(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2) // the flag set has said why
	}
	o.FromEnvironment()
	logging.Set(os.Stderr, o.LoggingFormat, o.Verbosity)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := manager.Run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kruise-manager:", err)
		os.Exit(1)
	}
}
