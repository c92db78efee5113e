// Command kruise-manager runs the controllers and the webhooks of Kruise.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the time zones of cron jobs, wherever the manager runs

	"github.com/seed-69ecc383/kruise/internal/command"
	"github.com/seed-69ecc383/kruise/internal/manager"
)

func main() {
	o := &manager.Options{}
	args := append([]string{"kruise-manager"}, os.Args[1:]...)
	os.Exit(command.Main(args, os.Stderr, o, func(ctx context.Context) error { return manager.Run(ctx, *o) }))
}
