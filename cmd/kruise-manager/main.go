// Command kruise-manager runs the controllers and the webhooks of Kruise. With check-uninstall as its first argument, it says what would
// stand still without them, and ends.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the time zones of cron jobs, wherever the manager runs

	"github.com/seed-69ecc383/kruise/internal/command"
	"github.com/seed-69ecc383/kruise/internal/manager"
	"github.com/seed-69ecc383/kruise/internal/uninstall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == uninstall.Verb {
		os.Exit(uninstall.Main(append([]string{"kruise-manager " + uninstall.Verb}, os.Args[2:]...), os.Stderr, uninstall.Workloads()))
	}
	o := &manager.Options{}
	args := append([]string{"kruise-manager"}, os.Args[1:]...)
	os.Exit(command.Main(args, os.Stderr, o, func(ctx context.Context) error { return manager.Run(ctx, *o) }))
}
