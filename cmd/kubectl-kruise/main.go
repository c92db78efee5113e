// Command kubectl-kruise is a plugin of kubectl: it shows rollouts of Kruise's workloads, and steers them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-69ecc383/kruise/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args, cli.System())
}
