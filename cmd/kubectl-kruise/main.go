// Command kubectl-kruise is a plugin of kubectl: it shows rollouts of Kruise's workloads, and steers them.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/seed-69ecc383/kruise/internal/cli"
)

// Memory is collected seldom by a command that ends soon, until there is so much of it in use.
const (
	gcPercent  = 300
	gcFromSize = 1 << 30
)

func main() { os.Exit(run()) }

func run() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(gcFromSize)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args, cli.System())
}
